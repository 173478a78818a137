package wot_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/wot"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

func serve(t *testing.T, bend func(*guard.Policy), confirm ...string) *adaptertest.Site {
	t.Helper()
	s := adaptertest.New(t, bend, confirm...)
	s.Serve(t, wot.Routes(&s.Site))
	for _, output := range []string{"greenhouse/vent", "greenhouse/heater", "greenhouse/lamp"} { // as they are written first
		for r, _ := s.Hub.Latest(output); r.Value.IsZero(); r, _ = s.Hub.Latest(output) {
			time.Sleep(time.Millisecond)
		}
	}
	return s
}

const (
	all   = adaptertest.SiteToken
	house = "/things/greenhouse"
)

// description has the members of a description that the tests check.
type description struct {
	ID         string                    `json:"id"`
	Title      string                    `json:"title"`
	Base       string                    `json:"base"`
	Properties map[string]map[string]any `json:"properties"`
	Actions    map[string]map[string]any `json:"actions"`
	Events     map[string]map[string]any `json:"events"`
	Links      []struct {
		Href string `json:"href"`
	} `json:"links"`
}

// td returns a description, and its names: of properties, actions, events and links.
func td(t *testing.T, s *adaptertest.Site, path, token string) (d description, names string) {
	t.Helper()
	res, text := s.Ask(t, "GET", path, token, "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/td+json" {
		t.Fatalf("%s: %s %s", path, res.Status, text)
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, l := range d.Links {
		links = append(links, l.Href)
	}
	return d, fmt.Sprint(keys(d.Properties), keys(d.Actions), keys(d.Events), links)
}

func keys[T any](m map[string]T) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// TestReader: a description has what its reader may use, and a stranger's nothing but that a site
// is there.
func TestReader(t *testing.T) {
	s := serve(t, nil)
	for words, want := range map[string][2]string{
		"read greenhouse/temperature": {
			"[status] [history] [] [things/greenhouse]", "[temperature] [] [] []"},
		"set greenhouse/vent max 1m, read greenhouse/button": {
			"[status] [history] [] [things/greenhouse]", "[vent] [release.vent] [button] []"},
		"show greenhouse, capture greenhouse": {
			"[] [] [] [things/greenhouse]", "[] [capture.camera show.message] [] []"},
		"stop":       {"[] [stop] [] []", ""},
		"ask helper": {"[] [] [] [things/agent:helper]", ""},
	} {
		token, _ := s.Token(t, fmt.Sprintf("t%d", len(words)), words)
		site, names := td(t, s, "/.well-known/wot", token)
		if names != want[0] || site.Title != s.Name {
			t.Errorf("%s: the site is described with %s, want %s", words, names, want[0])
		}
		if same, _ := td(t, s, "/things/site:"+s.Name, token); same.ID != site.ID {
			t.Errorf("the site is %s and %s", same.ID, site.ID)
		}
		res, text := s.Ask(t, "GET", house, token, "")
		if want[1] == "" {
			if res.StatusCode != 404 || strings.Contains(text, "greenhouse") {
				t.Errorf("%s: %s %s", words, res.Status, text)
			}
			continue
		}
		d, names := td(t, s, house, token)
		if names != want[1] || d.Base != s.URL+"/" || !strings.HasSuffix(d.ID, house) || !strings.HasPrefix(d.ID, "did:key:") {
			t.Errorf("%s: %s of %s at %s, want %s", words, names, d.ID, d.Base, want[1])
		}
	}
	_, names := td(t, s, "/.well-known/wot", "")
	if names != "[] [] [] []" {
		t.Errorf("a stranger is told of %s", names)
	}
	if _, text := s.Ask(t, "GET", "/.well-known/wot", "", ""); strings.Contains(text, s.Name) || strings.Contains(text, `"id"`) {
		t.Errorf("a stranger is told of %s", text)
	}
	if _, text := s.Ask(t, "GET", "/.well-known/capabilities.json", "", ""); strings.Contains(text, s.Name) || !strings.Contains(text, `"capabilities":[]`) {
		t.Error(text)
	}
	if _, text := s.Ask(t, "GET", "/.well-known/capabilities.json", all, ""); !strings.Contains(text, `"id":"helper/echo","name":"echo","version":"1.2.3"`) {
		t.Error(text)
	}
	for _, path := range []string{"/things", house, house + "/properties/vent", "/things/agent:helper"} {
		if res, text := s.Ask(t, "GET", path, "", ""); res.StatusCode != 401 || strings.Contains(text, "vent") {
			t.Errorf("%s: %s %s", path, res.Status, text)
		}
	}
	res, text := s.Ask(t, "GET", "/things", all, "")
	var list []description
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) != 3 || res.Header.Get("Content-Type") != "application/ld+json" {
		t.Errorf("%v %s %s", err, res.Header, text)
	}
}

// TestAffordances: each kind of point is described by what it takes.
func TestAffordances(t *testing.T) {
	s := serve(t, nil, "pump")
	d, _ := td(t, s, house, all)
	for name, want := range map[string]map[string]any{
		"temperature": {"type": "number", "unit": "Cel", "readOnly": true, "observable": true},
		"heater":      {"type": "boolean", "readOnly": nil, "writeOnly": nil, "observable": true},
		"vent":        {"type": "number", "minimum": 0.0, "maximum": 100.0, "unit": "%"},
	} {
		for term, v := range want {
			if got := d.Properties[name][term]; got != v {
				t.Errorf("%s has %s: %v, want %v", name, term, got, v)
			}
		}
	}
	if fmt.Sprint(d.Properties["vent"]["uriVariables"]) == "<nil>" || d.Properties["temperature"]["uriVariables"] != nil {
		t.Errorf("the length of a lease: %v", d.Properties["vent"])
	}
	if pump, _ := d.Properties["pump"]["description"].(string); !strings.Contains(pump, "approve each write") {
		t.Error(pump)
	}
	res, _ := s.Ask(t, "GET", house, all, "")
	if again, _ := s.Ask(t, "GET", house, all, "", "If-None-Match", res.Header.Get("ETag")); again.StatusCode != 304 {
		t.Error(again.Status)
	}
	set, _ := s.Token(t, "set", "set greenhouse/vent")
	d, _ = td(t, s, house, set)
	if v := d.Properties["vent"]; v["type"] != "number" || v["writeOnly"] != true || v["observable"] != nil {
		t.Errorf("who may only set it is told %v", v)
	}
}

// told waits until the site's readings have the vent's value, which the program tells before it
// answers a move.
func told(s *adaptertest.Site) {
	for r, _ := s.Hub.Latest("greenhouse/vent"); r.Value != s.Value("greenhouse/vent"); r, _ = s.Hub.Latest("greenhouse/vent") {
		time.Sleep(time.Millisecond)
	}
}

// TestCalls: permitted calls are made, once for each key, and others are refused as the node says.
func TestCalls(t *testing.T) {
	s := serve(t, nil, "pump")
	part, _ := s.Token(t, "part", "read greenhouse/temperature, read greenhouse/vent, set greenhouse/vent max 1m")
	property := func(name string) string { return house + "/properties/" + name }
	action := func(name string) string { return house + "/actions/" + name }
	for _, c := range []struct {
		verb, path, token, body string
		status                  int
		says                    string
	}{
		{"GET", property("temperature"), part, "", 200, ""},
		{"GET", property("heater"), part, "", 403, ""},
		{"GET", property("nothing"), all, "", 404, "temperature"},
		{"GET", property("message"), all, "", 400, ""},
		{"GET", "/things/agent:greenhouse/properties/vent", all, "", 404, ""},
		{"GET", house + "/properties", part, "", 200, `"vent":0`},
		{"GET", "/things/shed/properties", all, "", 404, ""},
		{"GET", "/things/site:zorilla/properties", all, "", 200, `"emergency_stop":false`},
		{"GET", "/things/site:other/properties/status", all, "", 404, ""},

		{"PUT", property("vent") + "?for=30", part, "40", 204, ""},
		{"GET", property("vent"), part, "", 200, "40"},
		{"PUT", property("vent") + "?for=90", part, "40", 403, ""},
		{"PUT", property("vent"), part, "400", 400, "0..100"},
		{"PUT", property("vent"), part, "true", 400, "greenhouse/vent is a level"},
		{"PUT", property("vent"), part, `"40"`, 400, "greenhouse/vent is a level"},
		{"PUT", property("heater"), all, "1", 400, "greenhouse/heater is a switch"},
		{"PUT", property("temperature"), all, "20", 400, "greenhouse/temperature is not an output"},
		{"PUT", property("vent"), part, "[1]", 400, ""},
		{"PUT", property("vent"), part, "", 400, "release.vent"},
		{"PUT", property("vent"), part, "null", 400, "release.vent"},
		{"PUT", property("vent"), part, "1 2", 400, ""},
		{"PUT", property("vent") + "?for=soon", part, "40", 400, "seconds"},
		{"PUT", property("vent") + "?for=1&for=30", part, "40", 400, ""},
		{"PUT", property("vent") + "?for=30;x", part, "40", 400, ""},
		{"PUT", property("heater"), part, "true", 403, ""},
		{"PUT", property("temperature"), part, "20", 403, ""},
		{"PUT", property("pump"), all, "true", 403, `"approval":"`},
		{"POST", action("release.vent"), part, "", 204, ""},
		{"GET", property("vent"), part, "", 200, "0"},
		{"POST", action("release.heater"), part, "", 403, ""},
		{"POST", action("explode.vent"), part, "", 404, ""},

		{"POST", action("show.message"), all, `"hello"`, 204, ""},
		{"POST", action("show.message"), all, `7`, 400, "text"},
		{"POST", action("show.message"), all, `"\u0007"`, 400, ""},
		{"POST", action("show.vent"), all, `"hello"`, 400, "greenhouse/vent is not a display"},
		{"POST", action("capture.camera"), all, "", 200, `"mime_type":"image/`},

		{"POST", "/things/site:zorilla/actions/history", part, `{"point":"greenhouse/temperature","hours":2,"steps":2}`, 200, `"mean":20`},
		{"POST", "/things/site:zorilla/actions/history", part, `{"point":"greenhouse/heater"}`, 403, ""},
		{"POST", "/things/site:zorilla/actions/history", part, `{"pint":"greenhouse/heater"}`, 400, `"the input: pint:`},
		{"POST", "/things/site:zorilla/actions/start", all, "", 404, ""},
		{"POST", "/things/site:zorilla/actions/stop", part, "", 403, ""},
		{"POST", "/things/site:zorilla/actions/stop", all, "", 200, `"emergency_stop":true`},
		{"PUT", property("vent"), part, "40", 409, ""},
	} {
		told(s)
		res, text := s.Ask(t, c.verb, c.path, c.token, c.body)
		if res.StatusCode != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s %s: %s %s, want %d and %s", c.verb, c.path, c.body, res.Status, text, c.status, c.says)
		}
	}
}

// TestRepeated: a write that is repeated with its key is made once.
func TestRepeated(t *testing.T) {
	s := serve(t, nil)
	write := func(value, key string) *http.Response {
		res, _ := s.Ask(t, "PUT", house+"/properties/vent?for=60", all, value, "Idempotency-Key", key)
		return res
	}
	for range 2 {
		if res := write("30", "a"); res.StatusCode != 204 || res.Header.Get("Agentsite-Seconds-Left") == "" {
			t.Error(res.Status, res.Header)
		}
	}
	if res := write("31", "a"); res.StatusCode != 400 {
		t.Error(res.Status)
	}
	if lines := s.Journal.Lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], "set_level ") {
		t.Errorf("%q", lines)
	}
	if res, _ := s.Ask(t, "PUT", house+"/properties/vent", all, "32", "Agentsite-Via", "a,b,c,d,e"); res.StatusCode != 403 && res.StatusCode != 400 {
		t.Error("a call through five others:", res.Status)
	}
	if v := s.Value("greenhouse/vent"); v != device.Number(30) {
		t.Errorf("the vent is at %v", v)
	}
}

// TestAgent: a skill is an action whose output is the task.
func TestAgent(t *testing.T) {
	s := serve(t, nil)
	const helper = "/things/agent:helper"
	d, names := td(t, s, helper, all)
	if names != "[] [answerTask crash echo fail question reject wait] [] []" {
		t.Error(names)
	}
	if in, _ := d.Actions["echo"]["input"].(map[string]any); in["type"] != "object" {
		t.Errorf("echo takes %v", in)
	}
	type task struct {
		ID       string         `json:"id"`
		State    string         `json:"state"`
		Says     string         `json:"says"`
		Result   jsontext.Value `json:"result"`
		Steps    []any          `json:"steps"`
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	}
	call := func(status int, verb, path, body string) (done task, res *http.Response) {
		t.Helper()
		res, text := s.Ask(t, verb, helper+"/actions/"+path, all, body)
		if res.StatusCode != status || status < 300 && len(text) > 0 && json.Unmarshal([]byte(text), &done) != nil {
			t.Fatalf("%s: %s %s, want %d", path, res.Status, text, status)
		}
		return done, res
	}
	if done, _ := call(200, "POST", "echo", `{"a":1}`); done.State != "completed" || string(done.Result) != `{"a":1}` || done.Steps != nil {
		t.Errorf("%+v", done)
	}
	if done, _ := call(200, "POST", "fail", ""); done.State != "failed" || done.Says != "the tank is empty" {
		t.Errorf("%+v", done)
	}
	if done, _ := call(200, "POST", "reject", `"in words"`); done.State != "rejected" {
		t.Errorf("%+v", done)
	}
	asked, res := call(202, "POST", "question", "")
	if asked.State != "input_required" || asked.Question.Text != "Which colour?" || res.Header.Get("Location") != helper+"/actions/question/"+asked.ID {
		t.Errorf("%+v %s", asked, res.Header)
	}
	call(400, "POST", "answerTask", fmt.Sprintf(`{"task":%q,"answer":"pink"}`, asked.ID))
	call(400, "POST", "answerTask", fmt.Sprintf(`{"task":%q,"answr":"red"}`, asked.ID))
	call(202, "POST", "answerTask", fmt.Sprintf(`{"task":%q,"answer":"red"}`, asked.ID))
	for done := asked; done.State != "completed"; done, _ = call(200, "GET", "question/"+asked.ID, "") {
	}
	call(400, "POST", "answerTask", fmt.Sprintf(`{"task":%q,"answer":"red"}`, asked.ID))
	waits, _ := call(202, "POST", "wait?wait=0", "")
	call(404, "GET", "echo/"+waits.ID, "")
	call(204, "DELETE", "wait/"+waits.ID, "")
	if done, _ := call(200, "GET", "wait/"+waits.ID, ""); done.State != "canceled" {
		t.Errorf("%+v", done)
	}
	call(400, "POST", "wait?wait=26", "")
	call(400, "POST", "echo", `[1]`)
	call(404, "POST", "unheard-of", "")
	other, _ := s.Token(t, "other", "read greenhouse")
	if res, text := s.Ask(t, "GET", helper, other, ""); res.StatusCode != 404 {
		t.Error(res.Status, text)
	}
	if res, text := s.Ask(t, "POST", helper+"/actions/echo", other, ""); res.StatusCode != 404 {
		t.Error(res.Status, text)
	}
}

// TestStop: no mistake in a body or a header keeps an emergency stop from stopping.
func TestStop(t *testing.T) {
	s := serve(t, nil)
	small, _ := s.Token(t, "small", "set greenhouse/pump")
	const pump, stop = "/things/greenhouse/properties/pump", "/things/site:zorilla/actions/stop"
	if res, text := s.Ask(t, "PUT", pump, small, "true"); res.StatusCode != 204 {
		t.Fatal(res.Status, text)
	}
	if res, text := s.Ask(t, "POST", stop, small, "now!"); res.StatusCode != 403 || s.Value("greenhouse/pump") != device.Bool(true) {
		t.Error(res.Status, text)
	}
	if res, text := s.Ask(t, "POST", stop+"?wait=x", adaptertest.SiteToken, "now!", "Agentsite-Expires-In", "soon"); res.StatusCode != 200 || s.Value("greenhouse/pump") != device.Bool(false) {
		t.Error(res.Status, text)
	}
}
