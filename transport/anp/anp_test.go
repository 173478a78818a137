package anp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, confirm ...string) *adaptertest.Site {
	s := adaptertest.New(t, nil, confirm...)
	s.Serve(t, Routes(&s.Site))
	return s
}

// get returns a document.
func get[T any](t *testing.T, s *adaptertest.Site, path, token string) (v T, text string) {
	t.Helper()
	res, text := s.Ask(t, "GET", path, token, "")
	if err := json.Unmarshal([]byte(text), &v); err != nil || res.StatusCode != 200 {
		t.Fatal(path, res.Status, text, err)
	}
	return v, text
}

type answer struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct {
			Code     string `json:"anp_code"`
			Fault    device.FaultKind
			Human    bool   `json:"humanAuthorization"`
			Approval string `json:"agentsite/approval"`
		}
	}
}

func call(t *testing.T, s *adaptertest.Site, token, method, params string) (answer, int) {
	t.Helper()
	res, text := s.Ask(t, "POST", "/anp/rpc", token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params))
	var got answer
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(res.Status, text, err)
	}
	return got, res.StatusCode
}

// TestDescriptions: each reader sees what it may call, and a stranger that a site is there.
func TestDescriptions(t *testing.T) {
	s := start(t, "pump")
	small, _ := s.Token(t, "small", "read greenhouse/temperature")
	page, _ := get[collection](t, s, "/.well-known/agent-descriptions", "")
	if page.Items[0].ID != s.URL+"/anp/ad.json" || page.Items[0].Name != "agentsite" {
		t.Error(page)
	}
	for token, want := range map[string]struct {
		name    string
		ifaces  []string
		methods []string
	}{
		"":                    {"agentsite", []string{"mcp", "negotiation", "operations"}, nil},
		small:                 {"zorilla", []string{"mcp", "negotiation", "operations"}, []string{"explain_point", "list_points", "read_history", "read_points", "site_status"}},
		adaptertest.SiteToken: {"zorilla", []string{"confirmed", "mcp", "negotiation", "operations"}, []string{"ask_agent", "emergency_stop", "explain_point", "list_points", "read_history", "read_points", "release_output", "set_level", "site_status"}},
	} {
		ad, text := get[description](t, s, "/anp/ad.json", token)
		var ids []string
		for _, i := range ad.Interfaces {
			ids = append(ids, i.ID)
			if i.HumanAuthorization != (i.ID == confirmed) {
				t.Error(i)
			}
		}
		if slices.Sort(ids); ad.Name != want.name || !slices.Equal(ids, want.ifaces) || ad.SecurityDefinitions[ad.Security] == nil {
			t.Errorf("%s, want %v", text, want)
		}
		doc, text := get[openRPC](t, s, "/anp/interface.json", token)
		var names []string
		for _, m := range doc.Methods {
			if !strings.HasPrefix(m.Name, "anp.") && m.Name != "capture_image" && m.Name != "show_text" && m.Name != "switch_output" {
				names = append(names, m.Name)
			}
		}
		if slices.Sort(names); !slices.Equal(names, want.methods) || doc.Servers[0].URL != s.URL+"/anp/rpc" {
			t.Errorf("%q, want %q", names, want.methods)
		}
		if token == "" && (strings.Contains(text, "greenhouse") || strings.Contains(text, "zorilla") || len(doc.Methods) != 2) {
			t.Error(text)
		}
		if strings.Contains(text, `["greenhouse/pump"]`) {
			t.Errorf("an output that is confirmed is among the others: %s", text)
		}
	}
	doc, text := get[openRPC](t, s, "/anp/confirmed.json", adaptertest.SiteToken)
	if len(doc.Methods) != 1 || doc.Methods[0].Name != "switch_output" || !strings.Contains(text, `"enum":["greenhouse/pump"]`) {
		t.Error(text)
	}
	if res, _ := s.Ask(t, "GET", "/anp/confirmed.json", "", ""); res.StatusCode != 401 {
		t.Error(res.Status)
	}
}

// TestCalls: operations, faults, terms and approvals.
func TestCalls(t *testing.T) {
	s := start(t, "pump")
	small, _ := s.Token(t, "small", "read greenhouse/temperature, set greenhouse/pump+greenhouse/vent max 5m")
	for _, c := range []struct {
		method, params string
		code           int
		fault          device.FaultKind
	}{
		{"read_points", `{"points":["greenhouse/temperature"]}`, 0, ""},
		{"read_points", `{"points":["greenhouse/temperature"],"_meta":{"agentsite/via":["a"]}}`, 0, ""},
		{"read_points", `{"points":["greenhouse/humidity"]}`, 403, device.Denied},
		{"read_points", `["greenhouse/temperature"]`, rpc.CodeInvalidParams, ""},
		{"read_points", `{"point":"x"}`, rpc.CodeInvalidParams, device.Invalid},
		{"read_points", `{"_meta":1}`, rpc.CodeInvalidParams, ""},
		{"capture_image", `{}`, 403, device.Denied},
		{"tools/list", `{}`, rpc.CodeMethodNotFound, ""},
		{"owner/routes", `{}`, rpc.CodeMethodNotFound, ""},
	} {
		got, status := call(t, s, small, c.method, c.params)
		switch {
		case c.code == 0 && got.Error != nil, c.code != 0 && (got.Error == nil || got.Error.Code != c.code || got.Error.Data.Fault != c.fault), status != 200:
			t.Errorf("%s %s: %d %s %+v", c.method, c.params, status, got.Result, got.Error)
		}
	}
	if res, text := s.Ask(t, "POST", "/anp/rpc", small, "{"); res.StatusCode != 400 || !strings.Contains(text, "-32700") {
		t.Error(res.Status, text)
	}
	if res, text := s.Ask(t, "POST", "/anp/rpc", small, `{"jsonrpc":"2.0","method":"read_points"}`); res.StatusCode != 400 || !strings.Contains(text, "nothing was done") {
		t.Error(res.Status, text)
	}
	if res, _ := s.Ask(t, "POST", "/anp/rpc", "", `{"jsonrpc":"2.0","id":1,"method":"anp.get_capabilities"}`); res.StatusCode != 401 {
		t.Error(res.Status)
	}
	if got, _ := call(t, s, adaptertest.SiteToken, "owner/routes", "{}"); got.Error == nil || got.Error.Code != rpc.CodeMethodNotFound {
		t.Errorf("%s %+v", got.Result, got.Error)
	}
	for range 2 {
		if got, _ := call(t, s, small, "set_level", `{"output":"greenhouse/vent","value":30,"for_seconds":60,"_meta":{"agentsite/idempotency-key":"k","agentsite/via":["a"]}}`); got.Error != nil {
			t.Error(got.Error)
		}
	}
	if lines := s.Journal.Lines(); len(lines) != 1 || !strings.Contains(lines[0], " a") {
		t.Errorf("%q", lines)
	}
	const move = `{"output":"greenhouse/pump","on":true,"_meta":{"agentsite/approval":%q}}`
	got, _ := call(t, s, small, "switch_output", fmt.Sprintf(move, ""))
	if got.Error == nil || !got.Error.Data.Human || got.Error.Data.Approval == "" {
		t.Fatalf("%+v", got.Error)
	}
	owner := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
	requests, err := s.Node.Requests(owner)
	if err != nil || len(requests) != 1 {
		t.Fatal(requests, err)
	}
	if err := s.Node.Approve(owner, requests[0].Handle, true); err != nil {
		t.Fatal(err)
	}
	if got, _ := call(t, s, small, "switch_output", fmt.Sprintf(move, got.Error.Data.Approval)); got.Error != nil || s.Value("greenhouse/pump") != device.Bool(true) {
		t.Errorf("%+v", got.Error)
	}
}

// TestStopWithoutID: an emergency stop without an id is made. Any other request without an id is
// refused.
func TestStopWithoutID(t *testing.T) {
	s := start(t)
	small, _ := s.Token(t, "small", "read greenhouse/temperature")
	if got, _ := call(t, s, adaptertest.SiteToken, "switch_output", `{"output":"greenhouse/pump","on":true}`); got.Error != nil {
		t.Fatal(got.Error)
	}
	for _, c := range []struct {
		token, method string
		status        int
		pump          bool
		id            string
	}{
		{adaptertest.SiteToken, "release_output", 400, true, ""},
		{small, "emergency_stop", 403, true, ""},
		{adaptertest.SiteToken, "release_output", 400, true, `"id":null,`},
		{adaptertest.SiteToken, "emergency_stop", 202, false, ""},
	} {
		res, text := s.Ask(t, "POST", "/anp/rpc", c.token, `{"jsonrpc":"2.0",`+c.id+`"method":"`+c.method+`","params":{"output":"greenhouse/pump"}}`)
		if res.StatusCode != c.status || s.Value("greenhouse/pump") != device.Bool(c.pump) {
			t.Errorf("%s: %s %s, and the pump is %v", c.method, res.Status, text, s.Value("greenhouse/pump"))
		}
	}
}

// TestNegotiate: the result of an intent, and each error.
func TestNegotiate(t *testing.T) {
	s := start(t, "pump")
	small, _ := s.Token(t, "small", "read greenhouse/temperature")
	const meta = `"meta":{"profile":"anp.meta.negotiation.v1","security_profile":"transport-protected"}`
	ok := func(capability, iface, mode string) map[string]string {
		return map[string]string{"capability": capability, "interface": iface, "mode": mode}
	}
	for _, c := range []struct {
		token, params string
		code          int
		want          map[string]string
	}{
		{small, `{` + meta + `,"body":{"intent":{"name":"read"}}}`, 0, ok("read_points", operations, "direct_structured_call")},
		{small, `{` + meta + `,"body":{"intent":{"name":"water the beds","intentTags":["sensor.read"]},"mode":"structured_selection","callerCapabilities":{"supportedProfiles":["anp.rpc.v1"],"supportedContentTypes":["application/json"]}}}`, 0, ok("read_points", operations, "direct_structured_call")},
		{adaptertest.SiteToken, `{` + meta + `,"body":{"intent":{"name":"ask"}}}`, 0, ok("ask_agent", operations, "async_task")},
		{adaptertest.SiteToken, `{` + meta + `,"body":{"intent":{"name":"switch"},"constraints":{"requiresHumanAuthorization":true}}}`, 0, ok("switch_output", confirmed, "direct_structured_call")},
		{adaptertest.SiteToken, `{` + meta + `,"body":{"requiredCapabilities":["cap.set_level"],"candidateInterfaceRefs":["operations"]}}`, 0, ok("set_level", operations, "direct_structured_call")},
		{small, `{` + meta + `,"body":{"intent":{"name":"book_hotel_room"}}}`, 1601, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"constraints":{"preferredInterfaceTypes":["NaturalLanguageInterface"]}}}`, 1601, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"candidateInterfaceRefs":["confirmed"]}}`, 1601, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"mode":"natural_language_protocol_drafting"}}`, 1602, nil},
		{small, `{"body":{"intent":{"name":"read"}}}`, 1603, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"constraints":{"requiredSecurityProfile":"direct-e2ee"}}}`, 1604, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"callerCapabilities":{"supportedContentTypes":["text/plain"]}}}`, 1605, nil},
		{small, `{` + meta + `,"body":{"intent":{}}}`, 1606, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"switch"}}}`, 1607, nil},
		{small, `{` + meta + `,"body":{"intent":{"name":"read"},"requiredCapabilities":["stop"]}}`, 1607, nil},
		{small, `{` + meta + `,"body":{"intent":"read"}}`, rpc.CodeInvalidParams, nil},
	} {
		got, _ := call(t, s, c.token, negotiateMethod, c.params)
		if c.code != 0 {
			if got.Error == nil || got.Error.Code != c.code || c.code > 0 && !strings.HasPrefix(got.Error.Data.Code, "meta.") {
				t.Errorf("%s: %s %+v, want %d", c.params, got.Result, got.Error, c.code)
			}
			continue
		}
		var n negotiated
		if got.Error != nil || json.Unmarshal(got.Result, &n) != nil {
			t.Errorf("%s: %+v", c.params, got.Error)
			continue
		}
		if have := ok(n.Selected.Capability, n.Selected.Interface, n.Execution.Mode); !maps.Equal(have, c.want) || n.ID == "" || n.Digest == "" || n.Execution.Human != (n.Selected.Interface == confirmed) {
			t.Errorf("%s: %+v, want %v", c.params, n, c.want)
		}
	}
	got, _ := call(t, s, small, capabilitiesMethod, `{"meta":{"profile":"anp.core.binding.v1"},"body":{}}`)
	if got.Error != nil || !strings.Contains(string(got.Result), negotiationProfile) || !strings.Contains(string(got.Result), s.Key.ID().String()) {
		t.Errorf("%s %+v", got.Result, got.Error)
	}
}

// FuzzANP: no parameters crash, and a tool's arguments are an object without the terms.
func FuzzANP(f *testing.F) {
	f.Add([]byte(`{"points":["a"],"_meta":{"agentsite/idempotency-key":"k"}}`))
	f.Add([]byte(`{"meta":{"profile":"anp.meta.negotiation.v1"},"body":{"intent":{"name":"read","intentTags":["a"]}}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		raw, err := rpc.ParseJSON(params)
		if err != nil {
			return
		}
		var n negotiation
		if raw.Decode(&n) == nil && n.check() == nil && n.Meta.Profile != negotiationProfile {
			t.Error(n)
		}
		args, _, err := split(raw, agents.Terms{})
		if err != nil {
			return
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(args, &all); err != nil || all["_meta"] != nil {
			t.Errorf("%q are arguments", args)
		}
	})
}
