//go:build e2e

package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
)

// field is a site with two callers that have a token each. alice holds an output, a subscription, a
// session and a request for an approval. mallory knows the names of all that; she may read
// okapi/temperature, set yak/level to 20 for 30 seconds, and ask for the gate, which needs the
// owner's approval.
type field struct {
	*harness.Site
	mallory string
	session string // hers, of an older revision
	alices  struct{ token, session, handle string }
	outputs map[string]string
	rest    map[string]string // what their witnesses said before
}

// attack is one request of mallory's, or what she writes to a connection.
type attack struct {
	name    string // what it is; names of the site's in it are known to her
	verb    string // POST when ""
	body    string
	headers []string // beside those of a good request in JSON; "" for leaving one out
	raw     string
	// answered means that an answer is right, and its content is checked.
	answered bool
}

const malloryMay = "read okapi/temperature, set yak/level 0..20 max 30s, set gate/relay"

// unseen are names that mallory is never told.
var unseen = []string{"hartebeest", "springbok", "humidity", "pressure", "alice", "local", "agentsite_", "%RH"}

// tells finds readings, and what is said of an output that was moved.
var tells = regexp.MustCompile(`value\\*":|seconds_left`)

// refused finds that something was not done.
var refused = regexp.MustCompile(`"error":|"isError":true|"resultType":"input_required"`)

func startField(t *testing.T) *field {
	t.Helper()
	dir := harness.TempDir(t)
	f := &field{outputs: map[string]string{}, rest: map[string]string{}}
	config := "site: { name: quagga }\ndevices:\n  okapi: { driver: sim, model: climate }\n"
	for name, more := range map[string]string{"hartebeest": "model: relay", "springbok": "model: relay", "gate": "model: relay, confirm: owner", "yak": "model: dimmer"} {
		f.outputs[name] = filepath.Join(dir, name)
		config += fmt.Sprintf("  %s: { driver: sim, %s, min_off: 0s, outputs_file: %s }\n", name, more, f.outputs[name])
	}
	f.Site = harness.Start(t, config, harness.Need(t, "the program", harness.Program))
	return f
}

// settle makes alice take her output, subscription, session and request, and returns her client.
func (f *field) settle(t *testing.T) *client.Client {
	t.Helper()
	token, alice := f.AddToken(t, "alice", "read *, set hartebeest/relay, set gate/relay")
	harness.WaitFor(t, time.Minute, "alice has the relay", func() bool {
		_, err := alice.AskOnce(t.Context(), "switch_output", []byte(`{"output":"hartebeest/relay","on":true,"for_seconds":300}`), client.Once{Key: "alice-1"})
		return err == nil
	})
	f.alices.token, f.alices.session = token, f.BeginSession(t, token)
	_, answer := f.Post(t, harness.ToolCall("switch_output", gateOn), "Authorization", "Bearer "+token, "Mcp-Name", "switch_output")
	f.alices.handle = cut(answer, "agentsite approve ", " ")
	f.mallory, _ = f.AddToken(t, "mallory", malloryMay)
	f.session = f.BeginSession(t, f.mallory)
	if f.alices.handle == "" {
		t.Fatal(answer)
	}
	harness.WaitFor(t, time.Minute, "all outputs are known", func() bool {
		for name, file := range f.outputs {
			v, at := harness.ReadWitness(file)
			f.rest[name] = v + at.String()
			if v == "" {
				return false
			}
		}
		return true
	})
	return alice
}

const gateOn = `{"output":"gate/relay","on":true,"for_seconds":9}`

// cut returns the text between two texts; "" if they are missing.
func cut(text, from, to string) string {
	_, text, _ = strings.Cut(text, from)
	text, _, ok := strings.Cut(text, to)
	if !ok {
		return ""
	}
	return text
}

// send makes an attack, and returns all that comes back.
func (f *field) send(t *testing.T, a attack) (status int, answer string) {
	t.Helper()
	if a.raw != "" {
		return f.write(t, a.raw)
	}
	if a.verb == "" {
		a.verb = "POST"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req := harness.NewRequest(t, a.verb, f.URL+"/mcp", a.body, "Authorization", "Bearer "+f.mallory, "Content-Type", "application/json",
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read_points")
	for i := 0; i < len(a.headers); i += 2 {
		name, value := a.headers[i], a.headers[i+1]
		switch {
		case value == "":
			req.Header.Del(name)
		case strings.HasPrefix(name, "+"): // once more
			req.Header.Add(name[1:], value)
		default:
			req.Header.Set(name, value)
		}
	}
	res, err := (&http.Client{CheckRedirect: stay}).Do(req.WithContext(ctx))
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	if strings.Contains(a.body, "subscriptions/listen") || a.verb == "GET" { // it may be a stream
		defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	}
	head, _ := httputil.DumpResponse(res, false)
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // as much as came in time
	var cbor rpc.Raw
	if res.Header.Get("Content-Type") == rpc.CBOR.ContentType() && rpc.CBOR.Decode(body, &cbor) == nil {
		if text, err := cbor.JSONText(); err == nil {
			body = text
		}
	}
	return res.StatusCode, string(head) + string(body)
}

// write writes to a connection, and returns the first status and all that comes back
// soon: the site may wait for more.
func (f *field) write(t *testing.T, text string) (status int, answer string) {
	t.Helper()
	host := strings.TrimPrefix(f.URL, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	io.WriteString(conn, strings.NewReplacer("\n", "\r\n", "$HOST", host, "$TOKEN", f.mallory).Replace(text))
	b, _ := io.ReadAll(conn)
	fmt.Sscanf(string(b), "HTTP/1.1 %d", &status)
	return status, string(b)
}

// judge fails where an attack did anything, or was told anything.
func (f *field) judge(t *testing.T, a attack) {
	t.Helper()
	status, answer := f.send(t, a)
	if status == 0 && a.raw == "" {
		t.Errorf("%s: it is not even answered", a.name)
	}
	known := a.name + a.body + a.raw + strings.Join(a.headers, " ")
	for _, word := range unseen {
		if strings.Contains(answer, word) && !strings.Contains(known, word) {
			t.Errorf("%s: it is told of %s: %s", a.name, word, answer)
		}
	}
	if !a.answered && (tells.MatchString(answer) || status >= 200 && status < 300 && !refused.MatchString(answer)) {
		t.Errorf("%s: it is answered: %s", a.name, answer)
	}
	for name, file := range f.outputs {
		if v, at := harness.ReadWitness(file); v+at.String() != f.rest[name] {
			t.Fatalf("%s: it moved %s to %s: %s", a.name, name, v, answer)
		}
	}
}

// inForms is a message in each form that the site takes: in JSON, in CBOR, and in a
// session of an older revision.
func (f *field) inForms(t *testing.T, a attack, method, name, params string) []attack {
	t.Helper()
	params = strings.TrimPrefix(params+",", ",")
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%s,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, quoted(method), params)
	mirrored := []string{"Mcp-Method", method, "Mcp-Name", "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="}
	form := func(name, body string, headers ...string) attack {
		b := a
		b.name, b.body, b.headers = a.name+", "+name, body, append(headers, a.headers...)
		return b
	}
	older := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%s,"params":{%s}}`, quoted(method), strings.TrimSuffix(params, ","))
	return []attack{
		form("in JSON", body, mirrored...),
		form("in CBOR", inCBOR(t, body), append(mirrored, "Content-Type", "application/cbor", "Accept", "application/cbor")...),
		form("in a session", older, "Mcp-Protocol-Version", "2025-06-18", "Mcp-Session-Id", f.session, "Mcp-Method", "", "Mcp-Name", ""),
	}
}

// ofSession is a message of the newest revision as one of a session.
func (f *field) ofSession(a attack) attack {
	a.name += ", in a session"
	a.body = strings.ReplaceAll(a.body, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`, "")
	a.body = strings.ReplaceAll(a.body, `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`, "")
	a.headers = []string{"Mcp-Protocol-Version", "2025-06-18", "Mcp-Session-Id", f.session, "Mcp-Method", "", "Mcp-Name", ""}
	return a
}

// calls is the call of a tool in each form.
func (f *field) calls(t *testing.T, a attack, tool, args, more string) []attack {
	t.Helper()
	return f.inForms(t, a, "tools/call", tool, strings.TrimPrefix(more+`,"name":`+quoted(tool)+`,"arguments":`+args, ","))
}

func quoted(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// TestAttacks: a client with a narrow token that knows everything but the owner's key and
// others' tokens moves nothing and reads nothing outside its grant, in every form of a message,
// with the handles of others, and by requests that hide in another. What one message can be is
// tested where it is decoded, and what is sent without a token by TestProbe.
func TestAttacks(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	f := startField(t)
	alice := f.settle(t)
	watched, lost := make(chan string, 100), make(chan error, 1)
	go func() {
		lost <- alice.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{Points: []string{"hartebeest/relay"}}, func(u agents.Update) error {
			for _, r := range u.Readings {
				select {
				case watched <- r.Point:
				default:
				}
			}
			return nil
		})
	}()
	<-watched // it has begun

	all := 0
	for _, class := range []struct {
		name    string
		attacks []attack
	}{
		{"beyond the grant", f.beyond(t)},
		{"handles", f.handles(t)},
		{"smuggling", f.smuggled()},
	} {
		t.Run(class.name, func(t *testing.T) {
			for _, a := range class.attacks {
				f.judge(t, a)
			}
			t.Logf("%d attacks", len(class.attacks))
		})
		all += len(class.attacks)
	}
	t.Logf("%d attacks in all", all)
	if all < 100 {
		t.Error("these are too few")
	}
	f.stands(t, alice, watched, lost)
}

// stands: after all that, everybody has what is theirs.
func (f *field) stands(t *testing.T, alice *client.Client, watched <-chan string, lost <-chan error) {
	if code, answer := f.Post(t, harness.ToolCall("read_points", `{"points":["okapi/temperature"]}`), "Authorization", "Bearer "+f.mallory); code != 200 || !tells.MatchString(answer) {
		t.Errorf("mallory does not have what is hers, so that this shows nothing: %d %s", code, answer)
	}
	if _, answer := f.send(t, f.inForms(t, attack{}, "ping", "", "")[2]); !strings.Contains(answer, `"result":{}`) {
		t.Errorf("her session ended on the way, so that it shows too little: %s", answer)
	}
	if out, err := f.CLI(t, "approve"); err != nil || !strings.Contains(out, f.alices.handle) {
		t.Errorf("alice's request is gone: %s %v", out, err)
	}
	_, answer := f.Post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Authorization", "Bearer "+f.alices.token, "Mcp-Protocol-Version", "2025-06-18", "Mcp-Session-Id", f.alices.session, "Mcp-Method", "", "Mcp-Name", "")
	if !strings.Contains(answer, `"result":{}`) {
		t.Errorf("alice's session is gone: %s", answer)
	}
	select {
	case err := <-lost:
		t.Error("alice's subscription ended:", err)
	default:
	}
	for len(watched) > 0 {
		<-watched
	}
	if _, err := alice.Ask(t.Context(), "release_output", []byte(`{"output":"hartebeest/relay"}`)); err != nil {
		t.Error(err)
	}
	select {
	case <-watched:
	case <-time.After(10 * time.Second):
		t.Error("alice is not told that her output moved")
	}
	if out, err := f.CLI(t, "set", "springbok/relay", "on", "--for", "1s"); err != nil {
		t.Error("the owner is not heard:", out, err)
	}
	if out, err := f.CLI(t, "journal", "--verify"); err != nil || !strings.Contains(out, "unchanged") {
		t.Error(out, err)
	}
	if log := f.Log.String(); strings.Contains(log, "panic") {
		t.Error(log)
	}
}
