package aitp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, confirm ...string) *adaptertest.Site {
	s := adaptertest.New(t, nil, confirm...)
	s.Serve(t, Routes(&s.Site))
	return s
}

// talk is a thread as a client has it.
type talk struct {
	t     *testing.T
	s     *adaptertest.Site
	token string
	id    string
}

func begin(t *testing.T, s *adaptertest.Site, token string) *talk {
	t.Helper()
	res, text := s.Ask(t, "POST", "/aitp/v1/thread", token, `{"metadata":{"actors":[{"id":"me","capabilities":["x"]}]}}`)
	var got struct{ ID string }
	if err := json.Unmarshal([]byte(text), &got); err != nil || res.StatusCode != 200 || got.ID == "" {
		t.Fatal(res.Status, text)
	}
	return &talk{t, s, token, got.ID}
}

// say sends a text, and returns the site's last message.
func (k *talk) say(text string) message {
	k.t.Helper()
	body, err := json.Marshal(map[string]any{"role": "user", "content": []string{text}})
	if err != nil {
		k.t.Fatal(err)
	}
	if res, text := k.s.Ask(k.t, "POST", "/aitp/v1/threads/"+k.id+"/messages", k.token, string(body)); res.StatusCode != 200 {
		k.t.Fatal(res.Status, text)
	}
	all := k.messages()
	return all[len(all)-1]
}

func (k *talk) messages() []message {
	k.t.Helper()
	_, text := k.s.Ask(k.t, "GET", "/aitp/v1/threads/"+k.id+"/messages", k.token, "")
	var list messageList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		k.t.Fatal(text, err)
	}
	return list.Data
}

func (k *talk) choose(m message, option string) message {
	k.t.Helper()
	var r requestDecision
	if err := json.Unmarshal([]byte(m.Content[len(m.Content)-1]), &r); err != nil || r.Decision.ID == "" {
		k.t.Fatalf("%q asks for no decision: %v", m.Content, err)
	}
	return k.say(fmt.Sprintf(`{"$schema":%q,"decision":{"request_decision_id":%q,"options":[{"id":%q}]}}`, decisionsSchema, r.Decision.ID, option))
}

// fill fills in a form: names and values in turn.
func (k *talk) fill(m message, values ...string) message {
	k.t.Helper()
	var r requestData
	if err := json.Unmarshal([]byte(m.Content[len(m.Content)-1]), &r); err != nil || r.Data.ID == "" {
		k.t.Fatalf("%q asks for no data: %v", m.Content, err)
	}
	var fields []map[string]string
	for i := 0; i < len(values); i += 2 {
		fields = append(fields, map[string]string{"id": values[i], "value": values[i+1]})
	}
	text, err := json.Marshal(map[string]any{"$schema": dataSchema, "data": map[string]any{"request_data_id": r.Data.ID, "fields": fields}})
	if err != nil {
		k.t.Fatal(err)
	}
	return k.say(string(text))
}

// TestThread: from plain words by a choice and a form to a move, which is made once.
func TestThread(t *testing.T) {
	s := start(t)
	k := begin(t, s, adaptertest.SiteToken)
	choice := k.say("Please switch the pump on.")
	if !strings.Contains(choice.Content[1], `{"id":"switch_output"`) || strings.Contains(choice.Content[1], "capture_image") {
		t.Fatal(choice.Content)
	}
	form := k.choose(choice, "switch_output")
	if !strings.Contains(form.Content[1], `"greenhouse/pump"`) || !strings.Contains(form.Content[1], `"options":["true","false"],"required":true`) {
		t.Fatal(form.Content)
	}
	if m := k.fill(form, "output", "greenhouse/pump", "on", "very"); m.Metadata.Fault != device.Invalid {
		t.Error(m)
	}
	if m := k.fill(form, "colour", "red"); m.Metadata.Fault != device.Invalid {
		t.Error(m)
	}
	if m := k.fill(form, "output", "greenhouse/pump", "on", "true", "for_seconds", "60"); m.Metadata.Fault != "" || !strings.Contains(m.Content[0], `"value":true`) {
		t.Error(m)
	}
	if m := k.fill(form, "output", "greenhouse/pump", "on", "true"); m.Metadata.Fault != device.Invalid {
		t.Errorf("a form that was filled in counts again: %v", m)
	}
	if m := k.choose(choice, "switch_output"); m.Metadata.Fault != device.Invalid {
		t.Errorf("a choice that was made counts again: %v", m)
	}
	if got := s.Journal.Lines(); len(got) != 1 || s.Value("greenhouse/pump") != device.Bool(true) {
		t.Errorf("%q", got)
	}
	if m := k.say(`{"operation":"release_output","arguments":{"output":"greenhouse/pump"}}`); m.Metadata.Fault != "" {
		t.Error(m)
	}
	if m := k.say("read_points"); !strings.Contains(m.Content[0], "greenhouse/temperature") {
		t.Error(m)
	}
}

// TestForms: the fields of a form become arguments of their kinds.
func TestForms(t *testing.T) {
	s := start(t)
	k := begin(t, s, adaptertest.SiteToken)
	form := k.say(`{"operation":"set_level","arguments":{"output":"greenhouse/vent"}}`)
	if !strings.Contains(form.Content[1], `"type":"number","required":true`) || strings.Contains(form.Content[1], `"output"`) {
		t.Fatal(form.Content)
	}
	if m := k.fill(form, "value", "30", "for_seconds", ""); m.Metadata.Fault != "" || s.Value("greenhouse/vent") != device.Number(30) {
		t.Error(m)
	}
	in := schema{Type: []byte(`"array"`), Items: &schema{Type: []byte(`"string"`)}}
	if v, err := in.value("a/b, c/d"); err != nil || string(v) != `["a/b","c/d"]` {
		t.Error(string(v), err)
	}
	for _, bad := range []string{"", "x", `"1"`, "1 2"} {
		if v, err := (&schema{Type: []byte(`"number"`)}).value(bad); err == nil {
			t.Errorf("%q is %s", bad, v)
		}
	}
}

// TestApproval: the caller's decision is not the owner's. It asks again, and the owner's decides.
func TestApproval(t *testing.T) {
	s := start(t, "pump")
	token, _ := s.Token(t, "small", "set greenhouse/pump")
	k := begin(t, s, token)
	m := k.say(`{"operation":"switch_output","arguments":{"output":"greenhouse/pump","on":true}}`)
	for range 3 {
		if !m.Metadata.Approval || !strings.Contains(m.Content[1], `"type":"confirmation"`) || s.Value("greenhouse/pump") == device.Bool(true) {
			t.Fatalf("%+v", m)
		}
		m = k.choose(m, optionAgain)
	}
	requests, err := s.Node.Requests(agents.Principal{Kind: principal.Local, ID: "local", Owner: true})
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	if err := s.Node.Approve(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, requests[0].Handle, true); err != nil {
		t.Fatal(err)
	}
	if m = k.choose(m, optionAgain); m.Metadata.Fault != "" || s.Value("greenhouse/pump") != device.Bool(true) {
		t.Errorf("%+v", m)
	}
	m = k.say(`{"operation":"switch_output","arguments":{"output":"greenhouse/pump","on":true,"for_seconds":7}}`)
	if m = k.choose(m, optionCancel); m.Metadata.Fault != "" || m.Content[0] != "It is not done." {
		t.Errorf("%+v", m)
	}
}

// TestTask: a task's question is a decision of its thread.
func TestTask(t *testing.T) {
	s := start(t)
	k := begin(t, s, adaptertest.SiteToken)
	m := k.say(`{"operation":"ask_agent","arguments":{"agent":"helper","skill":"question"}}`)
	if m = k.choose(m, "red"); !strings.Contains(m.Content[0], `"completed"`) || !strings.Contains(m.Content[0], `"red"`) {
		t.Error(m.Content)
	}
	if m = k.say(`{"operation":"ask_agent","arguments":{"agent":"helper","skill":"fail"}}`); m.Metadata.Fault != device.Unsafe {
		t.Error(m)
	}
}

// TestStop: a return to safe waits for no message before it, and a stop works whatever else its
// message has.
func TestStop(t *testing.T) {
	for _, safe := range []string{"emergency_stop", `{"operation":"emergency_stop","arguments":{"now":true}}`, `{"operation":"release_output","arguments":{"output":"greenhouse/pump"}}`} {
		s := start(t)
		k := begin(t, s, adaptertest.SiteToken)
		if m := k.say(`{"operation":"switch_output","arguments":{"output":"greenhouse/pump","on":true}}`); m.Metadata.Fault != "" {
			t.Fatal(m)
		}
		waited := make(chan int)
		go func() {
			body := `{"content":"{\"operation\":\"ask_agent\",\"arguments\":{\"agent\":\"helper\",\"skill\":\"wait\"}}"}`
			res, _ := s.Ask(t, "POST", "/aitp/v1/threads/"+k.id+"/messages", k.token, body)
			waited <- res.StatusCode
		}()
		var all []task.Task
		for len(all) == 0 {
			var err error
			if all, err = s.Tasks.List(t.Context(), agents.Principal{Kind: principal.Local, ID: "local", Owner: true}); err != nil {
				t.Fatal(err)
			}
		}
		if m := k.say(safe); m.Metadata.Fault != "" || s.Value("greenhouse/pump") != device.Bool(false) {
			t.Errorf("%s: %+v", safe, m)
		}
		k.say(`{"operation":"ask_agent","arguments":{"task":"` + all[0].ID + `","cancel":true}}`)
		if status := <-waited; status != 200 {
			t.Error(status)
		}
		if done, err := s.Tasks.Task(t.Context(), agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, all[0].ID); err != nil || done.State != task.Canceled {
			t.Error(done, err)
		}
	}
}

// TestPermissions: a thread is its principal's, and offers what that may do.
func TestPermissions(t *testing.T) {
	s := start(t)
	small, revoke := s.Token(t, "small", "read greenhouse/temperature")
	other, _ := s.Token(t, "other", "read *")
	k := begin(t, s, small)
	if m := k.say("?"); strings.Contains(m.Content[1], "switch_output") || !strings.Contains(m.Content[1], "read_points") {
		t.Error(m.Content)
	}
	for _, body := range []string{"switch_output", "no_such_tool", `{"operation":"read_points","arguments":{"points":["greenhouse/humidity"]}}`, `{"operation":"x","arguments":1}`, `{"x":1}`, `{`, "capture_image"} {
		if m := k.say(body); m.Metadata.Fault == "" {
			t.Errorf("%s is done: %v", body, m)
		}
	}
	for _, at := range []string{"", "/messages"} {
		for token, want := range map[string]int{other: 404, "": 401, small: 200} {
			if res, text := s.Ask(t, "GET", "/aitp/v1/threads/"+k.id+at, token, ""); res.StatusCode != want {
				t.Errorf("%s %s", res.Status, text)
			}
		}
	}
	if res, text := s.Ask(t, "POST", "/aitp/v1/threads/"+k.id, small, ""); res.StatusCode != 200 || !strings.Contains(text, `"actors":[{"id":"me"`) || !strings.Contains(text, dataSchema) {
		t.Error(res.Status, text)
	}
	revoke()
	if res, text := s.Ask(t, "GET", "/aitp/v1/threads/"+k.id, small, ""); res.StatusCode != 401 && res.StatusCode != 403 {
		t.Error(res.Status, text)
	}
}

// TestBounds: malformed and large messages are refused, and a thread forgets its oldest ones.
func TestBounds(t *testing.T) {
	s := start(t)
	k := begin(t, s, adaptertest.SiteToken)
	for _, body := range []string{
		"", "{", "[]", "1", `{"content":1}`, `{"content":[]}`, `{"content":[1]}`, `{"role":"assistant","content":"x"}`, `{"content":"x","attachments":[{"file_id":"f"}]}`,
		`{"content":"` + strings.Repeat("x", maxText+1) + `"}`, `{"content":"x","metadata":{"actor":"` + strings.Repeat("x", maxActor+1) + `"}}`,
		`{"content":"x","metadata":{"agentsite/idempotency-key":"` + strings.Repeat("x", maxText) + `"}}`, `{"content":"x","metadata":{"agentsite/via":["` + strings.Repeat("x", maxText) + `"]}}`,
		`{"content":["` + strings.Repeat(`","`, maxTexts) + `"]}`, `{"content":` + strings.Repeat("[", 1000) + `}`,
	} {
		if res, text := s.Ask(t, "POST", "/aitp/v1/threads/"+k.id+"/messages", k.token, body); res.StatusCode != 400 {
			t.Errorf("%.80s: %s %s", body, res.Status, text)
		}
	}
	ring := `{"content":"set_level","metadata":{"agentsite/via":["a"` + strings.Repeat(`,"a"`, 10_000) + `]}}`
	if res, text := s.Ask(t, "POST", "/aitp/v1/threads/"+k.id+"/messages", k.token, ring); res.StatusCode != 403 {
		t.Error(res.Status, text)
	}
	for _, body := range []string{`{"messages":["a","a","a","a","a","a","a","a","a"]}`, `{"messages":[1]}`, `{"metadata":{"actors":["` + strings.Repeat("x", maxText) + `"]}}`} {
		if res, text := s.Ask(t, "POST", "/aitp/v1/threads", k.token, body); res.StatusCode != 400 {
			t.Errorf("%.80s: %s %s", body, res.Status, text)
		}
	}
	for range maxMessages {
		k.say(strings.Repeat("x", 8000))
	}
	size := 0
	for _, m := range k.messages() {
		size += m.size()
	}
	if size > maxThread || size < maxThread/2 {
		t.Errorf("a thread keeps %d bytes", size)
	}
	res, text := s.Ask(t, "POST", "/aitp/v1/threads", k.token, `{"messages":["hello",{"role":"user","content":"site_status"}]}`)
	if res.StatusCode != 200 || strings.Count(text, `"thread.message"`) != 4 || !strings.Contains(text, "emergency_stop") {
		t.Error(res.Status, text)
	}
}

// FuzzAITP: no message crashes, and a form for any schema can be filled in.
func FuzzAITP(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":["read_points"],"metadata":{"actor":"a","agentsite/via":["b"]}}`), []byte(`{"properties":{"a":{"type":"array","items":{"enum":["x"]}}},"required":["a"]}`), "1")
	f.Add([]byte(`{"content":"{\"$schema\":\"x\",\"data\":{\"fields\":[{\"id\":\"a\",\"value\":\"b\"}]}}"}`), []byte(`{"properties":{"a":null,"b":{"type":["null","number"]}}}`), "a,b")
	f.Fuzz(func(t *testing.T, body, tool []byte, value string) {
		if m, err := parseMessage(body, agents.Terms{}); err == nil {
			if p, ok, err := parsePayload(m.texts); ok && err == nil && p.Operation == "" && p.Decision == nil && p.Data == nil {
				t.Errorf("%q is something", m.texts)
			}
		}
		var s schema
		if decode(tool, &s) != nil {
			return
		}
		for _, field := range s.fields(nil) {
			if v, err := s.Properties[field.ID].value(value); err == nil && !json.Valid(v) {
				t.Errorf("%q becomes %q", value, v)
			}
		}
	})
}
