package openapi

import (
	"bufio"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"

	"github.com/go-json-experiment/json"
)

// uses returns the operations that a document describes.
func uses(t *testing.T, document string) (ids []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`"operationId":"(\w+)"`).FindAllStringSubmatch(document, -1) {
		ids = append(ids, found[1])
	}
	slices.Sort(ids)
	return ids
}

// TestDocuments: each reader's documents name what that reader may use, and nothing else; a stranger's say that
// there is a site.
func TestDocuments(t *testing.T) {
	s := serve(t)
	limited, _ := s.Token(t, "limited", "read greenhouse/temperature, read greenhouse/vent, set greenhouse/vent")
	asker, _ := s.Token(t, "asker", "read greenhouse/light, ask helper")
	for name, c := range map[string]struct {
		token string
		ids   []string
		flows []string // of several steps
		named []string
	}{
		"a stranger": {"", nil, nil, nil},
		"a holder of a small permission": {
			limited, []string{"explainPoint", "listPoints", "moveOutput", "readHistory", "readPoint", "readPoints", "releaseOutput", "siteStatus", "watchPoints"}, []string{"keep_output"}, []string{"zorilla", "greenhouse", "temperature", "vent"},
		},
		"an asker": {
			asker, []string{"answerTask", "askAgent", "cancelTask", "explainPoint", "getTask", "listAgents", "listPoints", "listTasks", "readHistory", "readPoint", "readPoints", "siteStatus", "watchPoints"},
			[]string{"ask_and_wait"}, []string{"zorilla", "greenhouse", "light", "helper"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, document := s.Ask(t, "GET", documentPath, c.token, "")
			if got := uses(t, document); !slices.Equal(got, c.ids) {
				t.Errorf("it describes %q, want %q", got, c.ids)
			}
			if field(t, document, "openapi") != "3.1.0" || field(t, document, "components", "securitySchemes", "token", "scheme") != "bearer" {
				t.Error(document)
			}
			_, flows := s.Ask(t, "GET", flowsPath, c.token, "")
			if want := `"sources":[{"id":"site","path":"` + s.URL + documentPath + `"}]`; !strings.Contains(flows, want) {
				t.Errorf("%s\nwant %s", flows, want)
			}
			want := slices.Clone(c.flows)
			for _, id := range c.ids {
				if id != "watchPoints" {
					want = append(want, snake(id))
				}
			}
			if got := flowIDs(t, flows); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("flows %q, want %q", got, want)
			}
			for _, secret := range []string{"zorilla", "greenhouse", "temperature", "humidity", "light", "vent", "heater", "lamp", "message", "camera", "helper"} {
				quoted := regexp.MustCompile(`["/, ]` + secret + `[",/]`)
				if tells := quoted.MatchString(document) || quoted.MatchString(flows); tells != slices.Contains(c.named, secret) {
					t.Errorf("that there is %s is told: %v", secret, tells)
				}
			}
		})
	}
}

func flowIDs(t *testing.T, text string) (ids []string) {
	t.Helper()
	var doc agentsJSON
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(text, err)
	}
	for _, f := range doc.Flows {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestDocumentSize: the documents of a site with 30 devices, each a relay and a sensor, stay small.
func TestDocumentSize(t *testing.T) {
	var o agents.Offer
	for i := range 30 {
		address := device.Address(fmt.Sprint("device", i), "relay")
		o.Read, o.Switch, o.Release, o.History = append(o.Read, address), append(o.Switch, address), append(o.Release, address), append(o.History, address)
	}
	total := 0
	for _, op := range (&reader{Offer: &o}).uses() {
		text, err := json.Marshal(op.render(&reader{Offer: &o}))
		if err != nil {
			t.Fatal(err)
		}
		total += len(text)
	}
	if total == 0 || total > 16<<10 {
		t.Errorf("the operations of 30 devices are %d bytes", total)
	}
}

// TestUnchangedDocument: a document that has not changed is not sent again.
func TestUnchangedDocument(t *testing.T) {
	s := serve(t)
	res, _ := s.Ask(t, "GET", documentPath, adaptertest.SiteToken, "")
	again, text := s.Ask(t, "GET", documentPath, adaptertest.SiteToken, "", "If-None-Match", res.Header.Get("ETag"))
	if res.Header.Get("ETag") == "" || again.StatusCode != http.StatusNotModified || text != "" {
		t.Error(again.Status, text)
	}
}

// TestEvents: a watch begins with a snapshot, tells changes, and ends with the permission.
func TestEvents(t *testing.T) {
	s := serve(t)
	token, revoke := s.Token(t, "caller", "read greenhouse/vent, set greenhouse/vent")
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/events?point=greenhouse/vent&every=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func(prefix string) string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return data
			}
		}
		t.Fatalf("no %q: %v", prefix, lines.Err())
		return ""
	}
	got := next("data: ")
	if !strings.Contains(got, `"readings":[{"point":"greenhouse/vent","value":`) || !strings.Contains(got, `"emergency_stop":false`) {
		t.Error(got)
	}
	for !strings.Contains(got, `"value":0,"unit":"%"`) { // the guard has just begun
		got = next("data: ")
	}
	if res, text := s.Ask(t, "POST", vent, token, `{"value":30,"for":60}`); res.StatusCode != http.StatusOK {
		t.Fatal(text)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		got := next("data: ")
		if strings.Contains(got, `"value":30`) && strings.Contains(got, `"held_by":"token:caller.`) && strings.Contains(got, `"seconds_left":`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(got)
		}
	}
	revoke()
	if got := next("event: "); got != "error" {
		t.Fatal(got)
	}
	if got := next("data: "); field(t, got, "fault") != "denied" {
		t.Error(got)
	}
}

// TestEveryOperation: each operation of the table has a path.
func TestEveryOperation(t *testing.T) {
	for _, want := range op.Operations {
		if !slices.ContainsFunc(operations(), func(o *operation) bool { return o.does == want }) {
			t.Errorf("no path asks the operation %s", want.Name)
		}
	}
}
