//go:build e2e

package home

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// prometheus is a Prometheus, whose configuration and data are in a folder.
type prometheus struct {
	url, folder string
	cmd         *exec.Cmd // nil while it does not run
	ended       <-chan error
	log         *harness.LogBuffer
}

// newPrometheus returns one that does not run yet. HERE in its configuration stands for its address.
func newPrometheus(t *testing.T, folder, config string) *prometheus {
	t.Helper()
	for _, name := range []string{"prometheus", "promtool"} {
		program, _ := exec.LookPath(name)
		harness.Need(t, name, program)
	}
	address, file := "127.0.0.1:"+harness.FreePort(t), filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "HERE", address)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("promtool", "check", "config", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return &prometheus{url: "http://" + address, folder: folder}
}

// run runs it until it is ready; stop ends it, and keeps its data.
func (p *prometheus) run(t *testing.T) {
	t.Helper()
	p.log = new(harness.LogBuffer)
	p.cmd = exec.Command("prometheus", "--config.file", filepath.Join(p.folder, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(p.folder, "data"), "--web.listen-address", strings.TrimPrefix(p.url, "http://"),
		"--web.enable-remote-write-receiver")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.ended = harness.StartEmulator(t, p.cmd)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Log(p.log)
		}
	})
	harness.WaitFor(t, time.Minute, "Prometheus is ready", func() bool {
		res, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
}

func (p *prometheus) stop() {
	if p.cmd != nil {
		p.cmd.Process.Signal(os.Interrupt)
		<-p.ended
		p.cmd = nil
	}
}

// get asks the query API, and decodes what it says into data.
func (p *prometheus) get(t *testing.T, path string, query url.Values, data any) {
	t.Helper()
	res, err := http.Get(p.url + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := struct {
		Status string `json:"status"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v\n%s", path, query, err, body)
	}
}

// sample is a result of a query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"` // the time and the text of the number
}

func (s sample) value() string { return fmt.Sprint(s.Value[1]) }

// query evaluates an expression now.
func (p *prometheus) query(t *testing.T, expr string) []sample {
	t.Helper()
	var data struct {
		Result []sample `json:"result"`
	}
	p.get(t, "query", url.Values{"query": {expr}}, &data)
	return data.Result
}

// await waits until an expression has one result, of this value.
func (p *prometheus) await(t *testing.T, expr, value string) {
	t.Helper()
	harness.WaitFor(t, time.Minute, expr+" is "+value, func() bool {
		all := p.query(t, expr)
		return len(all) == 1 && all[0].value() == value
	})
}

// labels returns the values of a label of the series that match.
func (p *prometheus) labels(t *testing.T, label, match string) (all []string) {
	t.Helper()
	p.get(t, "label/"+label+"/values", url.Values{"match[]": {match}}, &all)
	return all
}

// pageBlock returns the block of YAML in the documentation that has this line.
func pageBlock(t *testing.T, line string) string {
	t.Helper()
	doc, err := os.ReadFile("../../../../docs/prometheus.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		if strings.Contains(m[1], line) {
			return m[1]
		}
	}
	t.Fatalf("docs/prometheus.md has no block with %q", line)
	return ""
}

// scrapedSite is a site with HTTPS that a Prometheus reads by three tokens, one of which is wrong.
func scrapedSite(t *testing.T) (*harness.Site, *prometheus) {
	t.Helper()
	r := harness.StartHTTPS(t, harness.TempDir(t), "  greenhouse: { driver: sim, every: 1s }")
	at, dir := r.HTTPS(t), harness.TempDir(t)
	certificate, err := os.ReadFile(at.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := r.AddToken(t, "prometheus", "read *")
	narrow, _ := r.AddToken(t, "plants", "read greenhouse/temperature")
	config := pageBlock(t, "scrape_configs:")
	config = strings.Replace(config, "192.168.1.20:8474", strings.TrimPrefix(at.URL, "https://"), 1)
	config = strings.Replace(config, "30s", "1s", 1)
	job := strings.TrimPrefix(config, "scrape_configs:\n")
	for _, other := range []string{"plants", "wrong"} {
		config += strings.NewReplacer("job_name: agentsite", "job_name: "+other, "agentsite.token", other+".token",
			"site: shed", "site: "+other).Replace(job)
	}
	for name, text := range map[string]string{
		"agentsite.pem": string(certificate), "agentsite.token": whole + "\n", "plants.token": narrow,
		"wrong.token": strings.Repeat("0", 64), "rules.yml": pageBlock(t, "groups:"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newPrometheus(t, dir, config)
	if out, err := exec.Command("promtool", "check", "rules", filepath.Join(dir, "rules.yml")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.run(t)
	return r, p
}

// TestScraped: Prometheus reads a site by HTTPS with a token as the documentation says: all that a token may
// read, one point with a token for that, and nothing with a wrong token.
func TestScraped(t *testing.T) {
	t.Parallel()
	r, p := scrapedSite(t)
	p.await(t, `up{job="agentsite",site="shed"}`, "1")
	p.await(t, `up{job="plants"}`, "1")
	p.await(t, `agentsite_reading{job="agentsite",point="box/relay"}`, "0")
	set := func(length string) {
		t.Helper()
		if out, err := r.CLI(t, "set", "box/relay", "on", "--for", length); err != nil {
			t.Fatal(out, err)
		}
	}
	set("1s")
	p.await(t, `agentsite_returns_total{job="agentsite",cause="expiry"}`, "1")
	set("5m")
	p.await(t, `agentsite_reading{job="agentsite",point="box/relay"}`, "1")
	p.await(t, `agentsite_output_away_from_safe{job="agentsite",point="box/relay"}`, "1")
	if n := len(p.query(t, `agentsite_output_lease_seconds{job="agentsite",point="box/relay"} > 100`)); n != 1 {
		t.Errorf("%d leases", n)
	}
	p.await(t, `agentsite_output_broken_leases_total{job="agentsite",point="box/relay"}`, "0")
	if err := syscall.Kill(r.Guard(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await(t, `agentsite_output_broken_leases_total{job="agentsite",point="box/relay"}`, "1")
	p.await(t, `agentsite_returns_total{job="agentsite",cause="restart"}`, "1")
	p.await(t, `agentsite_output_away_from_safe{job="agentsite",point="box/relay"}`, "0")
	if n := len(p.query(t, `agentsite_reading{job="agentsite",point="greenhouse/temperature",unit="Cel"}`)); n != 1 {
		t.Errorf("%d temperatures", n)
	}
	if n := len(p.query(t, `abs(agentsite_time_seconds{job="agentsite"} - time()) < 120`)); n != 1 {
		t.Error("the site's clock is another")
	}
	if points := p.labels(t, "point", `{job="plants"}`); !slices.Equal(points, []string{"greenhouse/temperature"}) {
		t.Errorf("a token for one point sees %v", points)
	}
	if n := len(p.query(t, `{job="plants",__name__=~"process_.*|go_.*|agentsite_(calls|returns|refusals|journal|history|readings|disk).*"}`)); n != 0 {
		t.Errorf("a token for one point sees %d metrics of the whole site", n)
	}

	p.await(t, `up{job="wrong"}`, "0")
	var targets struct {
		Active []struct {
			Labels    map[string]string `json:"labels"`
			LastError string            `json:"lastError"`
		} `json:"activeTargets"`
	}
	p.get(t, "targets", nil, &targets)
	for _, at := range targets.Active {
		if wrong := at.Labels["job"] == "wrong"; wrong != strings.Contains(at.LastError, "401") || wrong == (at.LastError == "") {
			t.Errorf("%s: %q", at.Labels["job"], at.LastError)
		}
	}
	if n := p.labels(t, "__name__", `{job="wrong",__name__!~"up|scrape_.*"}`); len(n) != 0 {
		t.Errorf("a wrong token sees %v", n)
	}
	if _, err := r.CLI(t, "token", "revoke", "plants"); err != nil {
		t.Fatal(err)
	}
	p.await(t, `up{job="plants"}`, "0")
	if n := p.query(t, `{job="plants",__name__=~"agentsite_.*"}`); len(n) != 0 {
		t.Errorf("a revoked token sees %v", n)
	}
	p.await(t, `up{job="agentsite"}`, "1")
}

// dashboard has the variables and the queries of a dashboard.
type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Definition string } `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct{ Expr string } `json:"list"`
	} `json:"annotations"`
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	} `json:"panels"`
}

// TestDashboard: every query of the dashboard has an answer of Prometheus, for all sites and points, and for
// one of each.
func TestDashboard(t *testing.T) {
	t.Parallel()
	r, p := scrapedSite(t)
	text, err := os.ReadFile("../../../../deploy/grafana/agentsite.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	p.await(t, `count(agentsite_reading{job="agentsite",unit="Cel"})`, "1")
	p.await(t, `agentsite_emergency_stop{job="agentsite"}`, "0")
	if _, err := r.CLI(t, "stop"); err != nil {
		t.Fatal(err)
	}
	variables := func(site, point, unit string) *strings.Replacer {
		return strings.NewReplacer("$site", site, "$point", point, "$unit", unit, "$__rate_interval", "2m")
	}
	all := variables(".*", ".*", "Cel")
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if m == nil {
			t.Fatal(v.Definition)
		}
		want := map[string]string{"site": "shed", "point": "greenhouse/temperature", "unit": "Cel"}[v.Name]
		if values := p.labels(t, m[2], all.Replace(m[1])); !slices.Contains(values, want) {
			t.Errorf("the variable %s: %v", v.Name, values)
		}
	}
	queries := make(map[string]string)
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			queries[target.Expr] = panel.Title
		}
	}
	for _, a := range d.Annotations.List {
		queries[a.Expr] = "the annotation"
	}
	for expr, title := range queries {
		for _, choice := range []*strings.Replacer{all, variables("shed", "box/relay|greenhouse/temperature", "Cel")} {
			harness.WaitFor(t, time.Minute, title+": "+choice.Replace(expr)+" has an answer", func() bool {
				return len(p.query(t, choice.Replace(expr))) > 0
			})
		}
	}
	t.Logf("%d queries", len(queries))
}
