package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The essentials of Grafana's schema of dashboards, as in kinds/dashboard/dashboard_kind.cue of
// github.com/grafana/grafana (commit 00139e84): members that are not there are a mistake here.
type (
	dashboard struct {
		UID           string         `json:"uid"`
		Title         string         `json:"title"`
		Description   string         `json:"description"`
		Tags          []string       `json:"tags"`
		Timezone      string         `json:"timezone"`
		Editable      bool           `json:"editable"`
		GraphTooltip  int            `json:"graphTooltip"`
		SchemaVersion int            `json:"schemaVersion"`
		Version       int            `json:"version"`
		Refresh       string         `json:"refresh"`
		Time          jsontext.Value `json:"time"`
		Templating    struct {
			List []variable `json:"list"`
		} `json:"templating"`
		Annotations struct {
			List []annotation `json:"list"`
		} `json:"annotations"`
		Links  []jsontext.Value `json:"links"`
		Panels []panel          `json:"panels"`
	}
	source   struct{ Type, UID string }
	variable struct {
		Type       string           `json:"type"`
		Name       string           `json:"name"`
		Label      string           `json:"label"`
		Datasource source           `json:"datasource"`
		Query      jsontext.Value   `json:"query"`
		Definition string           `json:"definition"`
		Refresh    int              `json:"refresh"`
		Sort       int              `json:"sort"`
		Multi      bool             `json:"multi"`
		IncludeAll bool             `json:"includeAll"`
		AllValue   string           `json:"allValue"`
		Hide       int              `json:"hide"`
		Current    jsontext.Value   `json:"current"`
		Options    []jsontext.Value `json:"options"`
	}
	annotation struct {
		Name        string `json:"name"`
		Datasource  source `json:"datasource"`
		Enable      bool   `json:"enable"`
		IconColor   string `json:"iconColor"`
		Expr        string `json:"expr"`
		TitleFormat string `json:"titleFormat"`
	}
	panel struct {
		ID          int      `json:"id"`
		Type        string   `json:"type"`
		Title       string   `json:"title"`
		Description string   `json:"description"`
		Datasource  source   `json:"datasource"`
		GridPos     grid     `json:"gridPos"`
		Targets     []target `json:"targets"`
		FieldConfig struct {
			Defaults  fieldConfig      `json:"defaults"`
			Overrides []jsontext.Value `json:"overrides"`
		} `json:"fieldConfig"`
		Options         jsontext.Value   `json:"options"`
		Transformations []jsontext.Value `json:"transformations"`
		Repeat          string           `json:"repeat"`
		RepeatDirection string           `json:"repeatDirection"`
		Collapsed       bool             `json:"collapsed"`
		Panels          []panel          `json:"panels"`
	}
	grid        struct{ H, W, X, Y int }
	fieldConfig struct {
		Unit     string `json:"unit"`
		Min      int    `json:"min"`
		Mappings []struct {
			Type    string                    `json:"type"`
			Options map[string]jsontext.Value `json:"options"`
		} `json:"mappings"`
		Thresholds struct {
			Mode  string `json:"mode"`
			Steps []struct {
				Color string   `json:"color"`
				Value *float64 `json:"value"`
			} `json:"steps"`
		} `json:"thresholds"`
		Custom jsontext.Value `json:"custom"`
	}
	target struct {
		RefID        string `json:"refId"`
		Datasource   source `json:"datasource"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Range        bool   `json:"range"`
	}
)

// TestDashboard: the dashboard fits Grafana's schema, its panels fill the grid without an overlap, and its
// queries name metrics and variables that are there.
func TestDashboard(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/grafana/agentsite.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(b, &d, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../docs/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if !slices.Contains([]string{"query", "datasource"}, v.Type) || v.Hide < 0 || v.Hide > 2 || v.Type == "query" && v.Datasource.UID != "${datasource}" {
			t.Errorf("variable %s: %+v", v.Name, v)
		}
	}
	check := func(expr string) {
		for _, m := range regexp.MustCompile(`\b(agentsite|process|go)_[a-z_]+`).FindAllString(expr, -1) {
			if !strings.Contains(string(doc), "| `"+m+"` |") {
				t.Errorf("%s: there is no %s", expr, m)
			}
		}
		for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
			if m[1] != "__rate_interval" && !slices.Contains(variables, m[1]) {
				t.Errorf("%s: there is no variable %s", expr, m[1])
			}
		}
	}
	taken, ids := make(map[[2]int]string), make(map[int]bool)
	for _, p := range d.Panels {
		g := p.GridPos
		if p.ID == 0 || ids[p.ID] || p.Title == "" || g.H <= 0 || g.W <= 0 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		for x := range g.W {
			for y := range g.H {
				at := [2]int{g.X + x, g.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%s is over %s", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !slices.Contains([]string{"stat", "timeseries", "state-timeline"}, p.Type) || len(p.Targets) == 0 || p.Datasource != (source{"prometheus", "${datasource}"}) {
			t.Errorf("panel %+v", p)
		}
		for _, q := range p.Targets {
			check(q.Expr)
		}
		for _, m := range p.FieldConfig.Defaults.Mappings {
			if m.Type != "value" {
				t.Errorf("%s: a mapping %s", p.Title, m.Type)
			}
		}
	}
	for _, a := range d.Annotations.List {
		check(a.Expr)
	}
	if d.SchemaVersion < 36 || d.GraphTooltip < 0 || d.GraphTooltip > 2 || len(d.UID) < 8 || len(d.UID) > 40 {
		t.Errorf("%+v", d)
	}
}
