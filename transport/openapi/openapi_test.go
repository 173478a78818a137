package openapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

const vent = "/api/outputs/greenhouse/vent"

// serve starts a site that serves the routes. The pump is moved with an owner's approval only.
func serve(t testing.TB) *adaptertest.Site {
	t.Helper()
	s := adaptertest.New(t, nil, "pump")
	s.Serve(t, Routes(&s.Site))
	return s
}

// field returns a member of a JSON text by its path.
func field(t testing.TB, text string, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// asked is a request, what it is answered with, and the kind of the fault.
type asked struct {
	verb, path, body string
	headers          []string
	status           int
	fault            string // "" where it is done
}

// TestOperations asks every operation as its document says, and holds each answer to its schema.
func TestOperations(t *testing.T) {
	s := serve(t)
	_, text := s.Ask(t, "GET", documentPath, adaptertest.SiteToken, "")
	task := askFor(t, s, "wait")
	question := askFor(t, s, "question")
	until(t, s, question, "input_required")
	used := make(map[string]bool)
	for _, a := range []asked{
		{"GET", "/api/points", "", nil, 200, ""},
		{"GET", "/api/points/greenhouse/temperature", "", nil, 200, ""},
		{"GET", "/api/points/greenhouse/vent", "", nil, 200, ""},
		{"GET", "/api/points/greenhouse/nothing", "", nil, 404, "invalid"},
		{"GET", "/api/points/nothing/temperature", "", nil, 404, "invalid"},
		{"GET", "/api/points/greenhouse/camera", "", nil, 400, "invalid"},
		{"GET", "/api/readings", "", nil, 200, ""},
		{"GET", "/api/readings?point=greenhouse/temperature&point=greenhouse%2Fvent", "", nil, 200, ""},
		{"GET", "/api/readings?point=greenhouse/nothing", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=greenhouse/temperature", "", nil, 200, ""},
		{"GET", "/api/history?point=greenhouse/temperature&hours=2&steps=3", "", nil, 200, ""},
		{"GET", "/api/history?point=greenhouse/temperature&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z", "", nil, 200, ""},
		{"GET", "/api/history?point=greenhouse/temperature&hours=many", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=greenhouse/temperature&hours=NaN", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=greenhouse/temperature&hours=1e9", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=greenhouse/temperature&hours=1&hours=2", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=greenhouse/temperature&hour=1", "", nil, 400, "invalid"},
		{"GET", "/api/history", "", nil, 400, "invalid"},
		{"GET", "/api/history?point=%zz", "", nil, 400, "invalid"},
		{"GET", "/api/why/greenhouse/vent", "", nil, 200, ""},
		{"GET", "/api/why/greenhouse/nothing", "", nil, 404, "invalid"},
		{"GET", "/api/status", "", nil, 200, ""},
		{"GET", "/api/status?detail=1", "", nil, 400, "invalid"},
		{"POST", vent, `{"value":30,"for":60}`, nil, 200, ""},
		{"POST", vent, `{"value":140}`, nil, 400, "invalid"},
		{"POST", vent, `{"value":"much"}`, nil, 400, "invalid"},
		{"POST", vent, `{"value":true}`, nil, 400, "invalid"},
		{"POST", vent, `{"valeu":30}`, nil, 400, "invalid"},
		{"POST", vent, `{"value":[1]}`, nil, 400, "invalid"},
		{"POST", vent, `{"value":30`, nil, 400, "invalid"},
		{"POST", vent, ``, nil, 400, "invalid"},
		{"POST", vent, `{"value":30}`, []string{"Agentsite-Expires-In", "soon"}, 400, "invalid"},
		{"POST", vent, `{"value":30}`, []string{"Idempotency-Key", strings.Repeat("k", 65)}, 400, "invalid"},
		{"POST", vent + "?value=30", `{}`, nil, 400, "invalid"},
		{"POST", "/api/outputs/greenhouse/nothing", `{"value":30}`, nil, 404, "invalid"},
		{"POST", "/api/outputs/greenhouse/temperature", `{"value":30}`, nil, 400, "invalid"},
		{"POST", "/api/outputs/greenhouse/pump", `{"value":true}`, nil, 403, "unavailable"},
		{"POST", vent, `{}`, nil, 200, ""},
		{"POST", vent, `{"value":null}`, nil, 200, ""},
		{"DELETE", vent, ``, nil, 200, ""},
		{"DELETE", "/api/outputs/greenhouse/nothing", ``, nil, 404, "invalid"},
		{"POST", "/api/displays/greenhouse/message", `{"text":"hello"}`, nil, 200, ""},
		{"POST", "/api/displays/greenhouse/message", `{"text":""}`, nil, 400, "invalid"},
		{"POST", "/api/displays/greenhouse/vent", `{"text":"hello"}`, nil, 400, "invalid"},
		{"GET", "/api/cameras/greenhouse/camera", "", nil, 200, ""},
		{"GET", "/api/cameras/greenhouse/nothing", "", nil, 404, "invalid"},
		{"GET", "/api/agents", "", nil, 200, ""},
		{"POST", "/api/agents/helper/tasks", `{"skill":"echo","arguments":{"n":1}}`, nil, 201, ""},
		{"POST", "/api/agents/helper/tasks", `{"skill":"juggle"}`, nil, 400, "invalid"},
		{"POST", "/api/agents/nobody/tasks", `{"skill":"echo"}`, nil, 404, "invalid"},
		{"GET", "/api/tasks", "", nil, 200, ""},
		{"GET", "/api/tasks/" + task, "", nil, 200, ""},
		{"GET", "/api/tasks/" + task + "?wait_seconds=0.01", "", nil, 200, ""},
		{"GET", "/api/tasks/" + task + "?wait_seconds=26", "", nil, 400, "invalid"},
		{"GET", "/api/tasks/nothing", "", nil, 404, "invalid"},
		{"POST", "/api/tasks/" + question + "/answer", `{"answer":"blue"}`, nil, 400, "invalid"},
		{"POST", "/api/tasks/" + question + "/answer", `{"answer":"red"}`, nil, 200, ""},
		{"POST", "/api/tasks/" + task + "/answer", `{"answer":"red"}`, nil, 400, "invalid"},
		{"POST", "/api/tasks/" + task + "/cancel", ``, nil, 200, ""},
		{"POST", "/api/tasks/nothing/cancel", ``, nil, 404, "invalid"},
		{"POST", "/api/stop?now=please", `stop!`, []string{"Agentsite-Expires-In", "soon"}, 200, ""}, // whatever is sent
		{"POST", vent, `{"value":30,"for":60}`, nil, 409, "unsafe"},
	} {
		res, body := s.Ask(t, a.verb, a.path, adaptertest.SiteToken, a.body, a.headers...)
		if res.StatusCode != a.status {
			t.Errorf("%s %s %s: %s %s, want %d", a.verb, a.path, a.body, res.Status, body, a.status)
			continue
		}
		media := res.Header.Get("Content-Type")
		o := operationOf(a.verb, a.path)
		if o == nil {
			t.Fatalf("%s %s is no operation", a.verb, a.path)
		}
		used[o.id] = true
		switch {
		case a.status >= 400:
			if media != "application/problem+json" || field(t, body, "fault") != a.fault {
				t.Errorf("%s %s: %s %s, want %s", a.verb, a.path, media, body, a.fault)
			}
			holds(t, text, "Problem", body)
		case o.media != "":
			if !strings.HasPrefix(media, "image/") || res.Header.Get("Last-Modified") == "" || len(body) < 100 {
				t.Errorf("%s %s: %s, %d bytes", a.verb, a.path, media, len(body))
			}
		default:
			holds(t, text, o.result, body)
		}
	}
	for _, o := range operations() {
		if !used[o.id] && o.id != "watchPoints" {
			t.Errorf("%s was not asked", o.id)
		}
		if field(t, text, "paths", o.path, strings.ToLower(o.verb), "operationId") != o.id {
			t.Errorf("%s is not described", o.id)
		}
	}
}

// operationOf returns the operation that a request is for.
func operationOf(verb, path string) *operation {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for _, o := range operations() {
		pattern := strings.Split(o.path, "/")
		if o.verb == verb && slices.EqualFunc(pattern, parts, func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") }) {
			return o
		}
	}
	return nil
}

// holds fails where an answer is not as a schema of the document says.
func holds(t *testing.T, document, name, answer string) {
	t.Helper()
	text, err := json.Marshal(field(t, document, "components", "schemas", name))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(name, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(name, err)
	}
	if err := resolved.Validate(field(t, answer)); err != nil {
		t.Errorf("%s is not %s: %v", answer, name, err)
	}
	if err := resolved.Validate("a text"); err == nil {
		t.Errorf("%s holds anything", name)
	}
}

// askFor asks the helper for a task and returns its ID.
func askFor(t testing.TB, s *adaptertest.Site, skill string) string {
	t.Helper()
	res, text := s.Ask(t, "POST", "/api/agents/helper/tasks", adaptertest.SiteToken, `{"skill":"`+skill+`"}`)
	id, _ := field(t, text, "id").(string)
	if res.StatusCode != http.StatusCreated || res.Header.Get("Location") != "/api/tasks/"+id {
		t.Fatal(res.Status, res.Header, text)
	}
	return id
}

// until waits for a task's state.
func until(t testing.TB, s *adaptertest.Site, task, state string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if _, text := s.Ask(t, "GET", "/api/tasks/"+task+"?wait_seconds=5", adaptertest.SiteToken, ""); field(t, text, "state") == state {
			return
		}
	}
	t.Fatalf("%s does not come to be %s", task, state)
}

// TestWaitsForTheEnd: a call that waits is answered when its task has ended.
func TestWaitsForTheEnd(t *testing.T) {
	s := serve(t)
	_, text := s.Ask(t, "GET", "/api/tasks/"+askFor(t, s, "fail")+"?wait_seconds=20", adaptertest.SiteToken, "")
	if field(t, text, "state") != "failed" || field(t, text, "fault") != "unsafe" {
		t.Error(text)
	}
}

// TestOnce: a call that is repeated with its key acts once, the chain of callers is in the journal,
// and a request that cannot be decoded is counted as a refusal.
func TestOnce(t *testing.T) {
	s := serve(t)
	const body = `{"value":30,"for":60}`
	for range 3 {
		if res, text := s.Ask(t, "POST", vent, adaptertest.SiteToken, body, "Idempotency-Key", `"once"`, "Agentsite-Via", "elsewhere"); res.StatusCode != http.StatusOK {
			t.Fatal(text)
		}
	}
	if got := s.Journal.Lines(); len(got) != 1 || got[0] != `set_level {"output":"greenhouse/vent","value":30,"for_seconds":60} elsewhere` {
		t.Errorf("%q", got)
	}
	if res, _ := s.Ask(t, "POST", vent, adaptertest.SiteToken, `{"value":40}`, "Idempotency-Key", "once"); res.StatusCode != http.StatusBadRequest {
		t.Error("another call has the same key, and is answered with", res.Status)
	}
	if res, text := s.Ask(t, "POST", vent, adaptertest.SiteToken, body, "Agentsite-Via", "a,b,c,d,e"); res.StatusCode != http.StatusForbidden {
		t.Error("a call through five sites:", res.Status, text)
	}
	before := s.Journal.Refused("set_level", device.Invalid)
	s.Ask(t, "POST", vent, adaptertest.SiteToken, `{"value":`)
	s.Ask(t, "POST", vent+"?x=y", adaptertest.SiteToken, body)
	s.Ask(t, "POST", vent, adaptertest.SiteToken, "")
	if got := s.Journal.Refused("set_level", device.Invalid) - before; got != 3 {
		t.Errorf("%d of 3 malformed calls were counted", got)
	}
}

// TestConfirm: a call that an owner has to approve is not made by a repetition, and nothing here
// approves it.
func TestConfirm(t *testing.T) {
	s := serve(t)
	token, _ := s.Token(t, "caller", "read *, set greenhouse/pump")
	approval := ""
	for range 2 {
		res, text := s.Ask(t, "POST", "/api/outputs/greenhouse/pump", token, `{"value":true}`, "Agentsite-Approval", approval)
		approval, _ = field(t, text, "approval").(string)
		if res.StatusCode != http.StatusForbidden || approval == "" || s.Value("greenhouse/pump") != device.Bool(false) {
			t.Fatal(res.Status, text)
		}
	}
	res, text := s.Ask(t, "POST", "/api/outputs/greenhouse/pump", token, `{"value":true}`, "Agentsite-Approval", "made up")
	if res.StatusCode != http.StatusGone || s.Value("greenhouse/pump") != device.Bool(false) {
		t.Error(res.Status, text)
	}
}

// TestPermission: the node decides, and each reader is told of its own points alone.
func TestPermission(t *testing.T) {
	s := serve(t)
	token, revoke := s.Token(t, "caller", "read greenhouse/temperature, set greenhouse/vent max 1m")
	for _, a := range []asked{
		{"GET", "/api/points/greenhouse/temperature", "", nil, 200, ""},
		{"GET", "/api/points/greenhouse/humidity", "", nil, 403, "denied"},
		{"GET", "/api/history?point=greenhouse/humidity", "", nil, 403, "denied"},
		{"GET", "/api/why/greenhouse/humidity", "", nil, 403, "denied"},
		{"GET", "/api/events?point=greenhouse/humidity", "", nil, 403, "denied"},
		{"POST", vent, `{"value":30,"for":60}`, nil, 200, ""},
		{"POST", vent, `{"value":30,"for":3600}`, nil, 403, "denied"},
		{"POST", "/api/outputs/greenhouse/heater", `{"value":true}`, nil, 403, "denied"},
		{"POST", "/api/displays/greenhouse/message", `{"text":"x"}`, nil, 403, "denied"},
		{"GET", "/api/cameras/greenhouse/camera", "", nil, 403, "denied"},
		{"POST", "/api/stop", "", nil, 403, "denied"},
		{"POST", "/api/agents/helper/tasks", `{"skill":"echo"}`, nil, 403, "denied"},
	} {
		if res, text := s.Ask(t, a.verb, a.path, token, a.body); res.StatusCode != a.status {
			t.Errorf("%s %s: %s %s, want %d", a.verb, a.path, res.Status, text, a.status)
		}
	}
	if _, text := s.Ask(t, "GET", "/api/readings", token, ""); strings.Contains(text, "humidity") || !strings.Contains(text, "temperature") {
		t.Error(text)
	}
	if _, text := s.Ask(t, "GET", "/api/agents", token, ""); text != `{"agents":[]}` {
		t.Error(text)
	}
	revoke()
	for _, path := range []string{"/api/points/greenhouse/temperature", documentPath, flowsPath, "/api/tasks"} {
		if res, text := s.Ask(t, "GET", path, token, ""); res.StatusCode != http.StatusUnauthorized {
			t.Error(path, res.Status, text)
		}
	}
	if res, text := s.Ask(t, "GET", "/api/points", "", ""); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status, text)
	}
}

// TestWrongType: a refusal of a point that is there says what it takes, and names no other.
func TestWrongType(t *testing.T) {
	s := serve(t)
	for _, c := range []struct{ path, body, says string }{
		{vent, `{"value":true}`, "greenhouse/vent is a level"},
		{vent, `{"value":"on"}`, "greenhouse/vent is a level"},
		{"/api/outputs/greenhouse/heater", `{"value":1}`, "greenhouse/heater is a switch"},
		{"/api/outputs/greenhouse/heater", `{"value":"on"}`, "greenhouse/heater is a switch"},
		{"/api/outputs/greenhouse/temperature", `{"value":1}`, "greenhouse/temperature is not an output"},
		{"/api/outputs/greenhouse/temperature", `{"value":null}`, "greenhouse/temperature is not an output"},
		{"/api/displays/greenhouse/vent", `{"text":"hello"}`, "greenhouse/vent is not a display"},
	} {
		res, text := s.Ask(t, "POST", c.path, adaptertest.SiteToken, c.body)
		if res.StatusCode != 400 || !strings.Contains(text, c.says) || strings.Contains(text, "there is no") {
			t.Errorf("%s %s: %s %s", c.path, c.body, res.Status, text)
		}
	}
}
