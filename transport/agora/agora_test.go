package agora

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task/tasktest"
	"agentsite/device"
	"agentsite/transport/adapter/adaptertest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hashes are those of the documents. A client keeps them: a document that is not what it was is
// another document.
var hashes = map[string]string{
	"list_points":    "35866a38f502edb2c531cb0368ac2c7cb2b73f5a",
	"read_points":    "5bbacf2aa86a763a7afeb4a8ba21d0136008f1b4",
	"read_history":   "28e8a771921526bbe3a5a55579c43bed1efb63d9",
	"explain_point":  "0626bfb63cd2286bbe3f4e128456f552bcf03621",
	"switch_output":  "31d3ae71234ab92ef9e9290a1833c2df6eb6e52f",
	"set_level":      "f608c50edcfc749bf66ef5dc8548208107a0f5ef",
	"release_output": "ab996123e352051314bb21c5376ba69cb8cf9d2f",
	"emergency_stop": "5eafc75ba513aeb9e5fe6bf6d8aeb3df3b5dda13",
	"site_status":    "27565b4eb0a8e41a67b41df9b3b91f67f1c8ce52",
	"show_text":      "6862a256242a64053d3fda0450fdd7c062c2528b",
	"capture_image":  "42538a38ddf876df7e1239aa17da90d93cf2dd25",
	"ask_agent":      "8d630fb66017f7a40ecae5f82bec58c223b12b8b",
}

func TestDocuments(t *testing.T) {
	for _, tool := range op.Tools {
		if !slices.ContainsFunc(documents(), func(d document) bool { return d.tool == tool.Name }) {
			t.Errorf("%s has no document", tool.Name)
		}
	}
	for _, d := range documents() {
		if hashes[d.tool] != d.hex {
			t.Errorf("%s has the hash %s, not %s\n%s", d.tool, d.hex, hashes[d.tool], d.text)
		}
		parts := strings.Split(d.text, "---\n")
		if len(parts) != 3 || parts[0] != "" || !strings.Contains(parts[1], "multiround: ") || strings.Contains(parts[1], ": \"\"") {
			t.Errorf("%s is no Protocol Document: %q", d.tool, parts)
		}
		text, err := url.PathUnescape(strings.TrimPrefix(d.source(), "data:text/plain;charset=utf-8,"))
		if err != nil || text != d.text {
			t.Errorf("%s: its source is of %q", d.tool, text)
		}
	}
}

func hash(tool string) string {
	all := documents()
	return all[slices.IndexFunc(all, func(d document) bool { return d.tool == tool })].hex
}

func base64Hash(tool string) string {
	all := documents()
	return all[slices.IndexFunc(all, func(d document) bool { return d.tool == tool })].b64
}

// said is an answer as a client reads it.
type said struct {
	Status         any
	Error, Message string
	Body           json.RawMessage
	ID             string `json:"conversationId"`
	Expires        int64  `json:"conversationExpires"`
	Approval       string `json:"agentsite/approval"`
}

func ask(t *testing.T, s *adaptertest.Site, path, token, body string, headers ...string) (said, int) {
	t.Helper()
	res, text := s.Ask(t, "POST", path, token, body, headers...)
	var got said
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(text, err)
	}
	return got, res.StatusCode
}

func start(t *testing.T, confirm ...string) *adaptertest.Site {
	s := adaptertest.New(t, nil, confirm...)
	s.Serve(t, Routes(&s.Site))
	return s
}

func TestOperations(t *testing.T) {
	s := start(t)
	small, _ := s.Token(t, "small", "read greenhouse/temperature")
	for _, c := range []struct {
		name, token, body, want string
		status                  int
	}{
		{"a reading", small, `{"protocolHash":"` + hash("read_points") + `","body":{"points":["greenhouse/temperature"]}}`, `"success"`, 200},
		{"by the hash in base64, in a text", small, `{"protocolHash":"` + base64Hash("read_points") + `","protocolSources":["data:,"],"body":"{}"}`, `"body":"{\"readings\":[{`, 200},
		{"in capitals", small, `{"protocolHash":"` + strings.ToUpper(hash("read_points")) + `","body":""}`, `"success"`, 200},
		{"a wrong request", small, `{"protocolHash":"` + hash("read_points") + `","body":{"point":"x"}}`, `{"status":"success","body":{"error":"read_points: point: `, 200},
		{"plain words in a body", small, `{"protocolHash":"` + hash("read_points") + `","body":"how warm is it?"}`, `"status":"success"`, 200},
		{"a list", small, `{"protocolHash":"` + hash("read_points") + `","body":[]}`, `"fault":"invalid"`, 200},
		{"another's point", small, `{"protocolHash":"` + hash("read_points") + `","body":{"points":["greenhouse/humidity"]}}`, `"fault":"denied"`, 200},
		{"what it may not do", small, `{"protocolHash":"` + hash("switch_output") + `","body":{"output":"greenhouse/pump","on":true}}`, `"failure"`, 200},
		{"a document of others", small, `{"protocolHash":"` + strings.Repeat("0", 40) + `","body":{}}`, `"error":"Unsupported protocol"`, 200},
		{"plain language", small, `{"protocolHash":null,"body":"how warm is it?"}`, `plain language`, 200},
		{"without a body", small, `{"protocolHash":"` + hash("read_points") + `"}`, `"error":"Missing field 'body'"`, 200},
		{"no JSON", small, `{`, `"status":400`, 400},
		{"a number for a hash", small, `{"protocolHash":1,"body":{}}`, `protocolHash is`, 400},
		{"too deep", small, `{"body":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, `nests deeper`, 400},
		{"a stranger", "", `{"protocolHash":"` + hash("read_points") + `","body":{}}`, `token`, 401},
	} {
		res, text := s.Ask(t, "POST", "/agora", c.token, c.body)
		if res.StatusCode != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s %s, want %d %s", c.name, res.Status, text, c.status, c.want)
		}
		var always map[string]any
		if c.status == 200 && (json.Unmarshal([]byte(text), &always) != nil || always["body"] == nil) {
			t.Errorf("%s has no body, which Python reads: %s", c.name, text)
		}
	}
}

// TestMove: a move and its release, once by a key in the envelope.
func TestMove(t *testing.T) {
	s := start(t)
	body := `{"protocolHash":"` + hash("switch_output") + `","body":{"output":"greenhouse/pump","on":true,"for_seconds":60},"agentsite/idempotency-key":"k","agentsite/via":["a"]}`
	for range 2 {
		if got, _ := ask(t, s, "/agora", adaptertest.SiteToken, body); got.Status != "success" {
			t.Fatal(got)
		}
	}
	if s.Value("greenhouse/pump") != device.Bool(true) {
		t.Error("the pump does not run")
	}
	if got := s.Journal.Lines(); len(got) != 1 || !strings.Contains(got[0], " a") {
		t.Errorf("the journal has %q", got)
	}
	if got, _ := ask(t, s, "/agora", adaptertest.SiteToken, `{"protocolHash":"`+hash("release_output")+`","body":{"output":"greenhouse/pump"}}`); got.Status != "success" {
		t.Error(got)
	}
	ring := strings.Repeat(`"x",`, agents.MaxVia) + `"y"`
	if got, _ := ask(t, s, "/agora", adaptertest.SiteToken, strings.Replace(body, `"a"`, ring, 1)); got.Status != "failure" || !strings.Contains(string(got.Body), "denied") {
		t.Errorf("through too many sites: %+v", got)
	}
}

// TestApproval: a move that an owner confirms waits for the owner, and says so.
func TestApproval(t *testing.T) {
	s := start(t, "pump")
	token, _ := s.Token(t, "small", "set greenhouse/pump")
	got, _ := ask(t, s, "/agora", token, `{"protocolHash":"`+hash("switch_output")+`","body":{"output":"greenhouse/pump","on":true}}`)
	if got.Status != "failure" || got.Approval == "" || got.Error == "" || got.Error != got.Message {
		t.Errorf("%+v", got)
	}
	if s.Value("greenhouse/pump") == device.Bool(true) {
		t.Error("the pump runs")
	}
}

// TestConversation: a task asks, is answered in its conversation, and ends.
func TestConversation(t *testing.T) {
	s := start(t)
	token, _ := s.Token(t, "ann", "ask helper")
	other, _ := s.Token(t, "bob", "ask helper")
	begin := `{"protocolHash":"` + hash("ask_agent") + `","multiround":true,"body":{"agent":"helper","skill":"question"}}`
	got, _ := ask(t, s, "/agora", token, begin)
	if got.Status != "success" || got.ID == "" || got.Expires < time.Now().Unix() || !strings.Contains(string(got.Body), `"input_required"`) {
		t.Fatalf("%+v %s", got, got.Body)
	}
	path := "/agora/conversations/" + got.ID
	if _, status := ask(t, s, path, other, `{"body":{}}`); status != 404 {
		t.Errorf("another's conversation: %d", status)
	}
	if _, status := ask(t, s, path, token, `{"protocolHash":"`+hash("read_points")+`","body":{}}`); status != 400 {
		t.Errorf("another protocol: %d", status)
	}
	for _, body := range []string{`{"agent":"helper"}`, `{"task":"x"}`, `{"answer":"blue"}`} {
		if got, _ := ask(t, s, path, token, `{"body":`+body+`}`); !strings.Contains(string(got.Body), `"invalid"`) {
			t.Errorf("%s: %s", body, got.Body)
		}
	}
	if got, _ := ask(t, s, path, token, `{"protocolHash":"`+base64Hash("ask_agent")+`","body":"{\"answer\":\"red\",\"wait_seconds\":20}","multiround":true}`); got.Status != "success" || !strings.Contains(string(got.Body), `completed`) {
		t.Errorf("%+v %s", got, got.Body)
	}
	for range 2 {
		if res, text := s.Ask(t, "DELETE", path, token, ""); res.StatusCode != 200 || text != `{"status":"success"}` {
			t.Error(res.Status, text)
		}
	}
	if _, status := ask(t, s, path, token, `{"body":{}}`); status != 404 {
		t.Errorf("a closed conversation: %d", status)
	}
	got, _ = ask(t, s, "/agora", token, `{"protocolHash":"`+hash("ask_agent")+`","multiround":true,"body":{"agent":"helper","skill":"echo","arguments":{"a":1}}}`)
	if got.ID != "" || !strings.Contains(string(got.Body), "completed") {
		t.Errorf("a task that has ended: %+v %s", got, got.Body)
	}
	got, _ = ask(t, s, "/agora", token, `{"protocolHash":"`+hash("ask_agent")+`","multiround":true,"body":{"agent":"helper","skill":"wait","wait_seconds":0}}`)
	if got, _ = ask(t, s, "/agora/conversations/"+got.ID, token, `{"body":{"cancel":true}}`); !strings.Contains(string(got.Body), `"canceled"`) {
		t.Errorf("%+v %s", got, got.Body)
	}
}

// TestWellknown: a reader sees the documents that it may use, and a stranger none.
func TestWellknown(t *testing.T) {
	s := start(t)
	small, _ := s.Token(t, "small", "read greenhouse/temperature")
	asks, _ := s.Token(t, "asks", "ask "+tasktest.Helper.Name)
	for token, want := range map[string][]string{
		"":    nil,
		small: {"explain_point", "list_points", "read_history", "read_points", "site_status"},
		asks:  {"ask_agent"},
	} {
		_, text := s.Ask(t, "GET", "/agora/wellknown", token, "")
		var got map[string][]string
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var tools []string
		for _, d := range documents() {
			if sources := got[d.hex]; sources != nil {
				tools = append(tools, d.tool)
				if _, text := s.Ask(t, "GET", strings.TrimPrefix(sources[1], s.URL), token, ""); text != d.text {
					t.Errorf("%s is %q", sources[1], text)
				}
			}
		}
		if slices.Sort(tools); !slices.Equal(tools, want) || len(got) != len(want) {
			t.Errorf("%q, want %q: %v", tools, want, slices.Sorted(maps.Keys(got)))
		}
	}
	if res, _ := s.Ask(t, "GET", "/agora/documents/x", small, ""); res.StatusCode != 404 {
		t.Error(res.Status)
	}
}

// FuzzAgora: no request crashes, and what is taken as arguments is an object.
func FuzzAgora(f *testing.F) {
	f.Add([]byte(`{"protocolHash":null,"body":{"points":["a/b"]}}`))
	f.Add([]byte(`{"protocolHash":"x","body":"{\"answer\":\"yes\"}","multiround":true,"agentsite/via":["a"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, _, err := parse(body, agents.Terms{})
		if err != nil {
			return
		}
		args, _, err := e.arguments()
		if err != nil {
			return
		}
		if args[0] != '{' {
			t.Errorf("%q are arguments", args)
		}
		if args, err = about("TASK", args); err == nil && !json.Valid(args) {
			t.Errorf("%q is not valid", args)
		}
	})
}
