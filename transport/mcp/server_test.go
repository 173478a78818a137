package mcp_test

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/transport/rpc"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTranscript holds the wire to what the specification shows: each request and
// the exact line that answers it.
func TestTranscript(t *testing.T) {
	const server = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}`
	const done = `"resultType":"complete",` + server
	const kept = `"ttlMs":300000,"cacheScope":"private"`
	result := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"result":{` + rest + `}}` }
	fault := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"error":{` + rest + `}}` }
	begun := regexp.MustCompile(`"message":"([^ "]*)(?:[^"\\]|\\.)*"`) // of a fault the code, and how its text begins
	b := newBench()
	for _, c := range []struct{ say, want string }{
		{message("server/discover", "", "{}"), result(done + "," + kept + `,"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
			`"capabilities":{"tools":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{},"extensions":{"agentsite/unconfirmed":{}}}`)},
		{message("tools/call", `"name":"echo","arguments":{"text":"hé","n":1.5}`, "{}"),
			result(done + `,"content":[{"type":"text","text":"{\"text\":\"hé\",\"n\":1.5}"}],"structuredContent":{"text":"hé","n":1.5}`)},
		{message("tools/call", `"name":"echo","arguments":{"Text":"x"}`, "{}"),
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"agentsite/fault":"invalid"},` +
				`"content":[{"type":"text","text":"invalid: echo: Text: there is no such field"}],"isError":true}}`},
		{message("tools/call", `"name":"fail"`, "{}"),
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"agentsite/fault":"unsafe","agentsite/retry-after":1.5},` +
				`"content":[{"type":"text","text":"unsafe: not now"}],"isError":true}}`},
		{message("tools/call", `"name":"nothing"`, "{}"), fault(`"code":-32602,"message":"Unknown"`)},
		{message("tools/call", `"name":"needs"`, "{}"), fault(`"code":-32021,"message":"this","data":{"requiredCapabilities":{"sampling":{}}}`)},
		{message("tools/call", `"name":"ask"`, "{}"), fault(`"code":-32021,"message":"this","data":{"requiredCapabilities":{"elicitation":{}}}`)},
		{message("tools/list", `"cursor":"x"`, "{}"), fault(`"code":-32602,"message":"cursor:"`)},
		{message("resources/list", "", "{}"), result(done + "," + kept + `,"resources":[{"uri":"t:a","name":"a"},{"uri":"t:b","name":"b"}]`)},
		{message("resources/templates/list", "", "{}"), result(done + "," + kept + `,"resourceTemplates":[{"uriTemplate":"t:{x}","name":"x"}]`)},
		{message("resources/read", `"uri":"t:a"`, "{}"), result(done + `,"ttlMs":0,"cacheScope":"private","contents":[{"uri":"t:a","mimeType":"text/plain","text":""}]`)},
		{message("resources/read", `"uri":"t:b"`, "{}"), result(done + `,"ttlMs":0,"cacheScope":"private","contents":[{"uri":"t:b","mimeType":"image/png","blob":"AQI="}]`)},
		{message("resources/read", `"uri":"t:c"`, "{}"), fault(`"code":-32602,"message":"Resource","data":{"uri":"t:c"}`)},
		{message("prompts/list", "", "{}"), result(done + "," + kept + `,"prompts":[{"name":"p","arguments":[{"name":"x","required":true}]}]`)},
		{message("prompts/get", `"name":"p","arguments":{"x":"y"}`, "{}"), result(done + `,"messages":[{"role":"user","content":{"type":"text","text":"y"}}]`)},
		{message("prompts/get", `"name":"q"`, "{}"), fault(`"code":-32602,"message":"Unknown"`)},
		{message("completion/complete", `"ref":{"type":"ref/prompt","name":"q"},"argument":{"name":"x","value":""}`, "{}"),
			result(done + `,"completion":{"values":[],"total":0,"hasMore":false}`)},
		{message("completion/complete", `"ref":{"type":"ref/else"},"argument":{"name":"x","value":""}`, "{}"),
			fault(`"code":-32602,"message":"params:"`)},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			fault(`"code":-32602,"message":"params._meta"`)},
		{strings.Replace(message("tools/list", "", "{}"), "2026-07-28", "1900-01-01", 1),
			fault(`"code":-32022,"message":"Unsupported",` +
				`"data":{"requested":"1900-01-01","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]}`)},
		{message("tools/call", `"name":["x"]`, "{}"), fault(`"code":-32602,"message":"params:"`)},
		{strings.Replace(message("tools/call", `"name":"echo"`, "{}"), `"_meta":{`, `"_meta":{"agentsite/idempotency-key":7,`, 1), fault(`"code":-32602,"message":"params:"`)},
		{strings.Replace(message("tools/call", `"name":"echo"`, "{}"), `"_meta":{`, `"_meta":{"agentsite/expires-in":"1s",`, 1), fault(`"code":-32602,"message":"params:"`)},
	} {
		got := b.lines(t, c.say, nil)
		if len(got) != 1 || begun.ReplaceAllString(got[0], `"message":"$1"`) != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.say, got, c.want)
		}
	}
}

// TestUnknownCause keeps the inside of a failure from callers of a protocol
// method, and tells it to those of a tool, who are known.
func TestUnknownCause(t *testing.T) {
	got := newBench().lines(t, message("tools/call", `"name":"break"`, "{}"), nil)
	if len(got) != 1 || field(t, got[0], "result", "_meta", "agentsite/fault") != "internal" {
		t.Errorf("%s", got)
	}
}

func TestNobody(t *testing.T) {
	b := newBench()
	for _, m := range b.methods {
		for _, ev := range []rpc.Sender{{}, {Refused: device.Faultf(device.Denied, "a wrong token")}, {Key: "12D3"}, {Who: principal.Principal{Owner: true}}} {
			var got []string
			b.say(t.Context(), rpc.JSON, []byte(message(m, `"name":"echo","uri":"t:a"`, "{}")), ev, nil, func(s string) { got = append(got, s) })
			if len(got) != 1 || field(t, got[0], "error", "code") != 403.0 {
				t.Errorf("%s with %+v: %s", m, ev, got)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	b := newBench()
	good := headers{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"}}
	body := message("tools/call", `"name":"echo","arguments":{"text":"x"}`, "{}")
	if got := b.lines(t, body, good); field(t, got[0], "result", "resultType") != "complete" {
		t.Fatalf("good headers: %s", got)
	}
	for name := range good {
		for what, values := range map[string][]string{"missing": nil, "twice": {good[name][0], good[name][0]}, "other": {"x"}, "other case": {strings.ToUpper(good[name][0]) + " "}} {
			bad := headers{}
			for k, v := range good {
				bad[k] = v
			}
			bad[name] = values
			if got := b.lines(t, body, bad); field(t, got[0], "error", "code") != -32020.0 {
				t.Errorf("%s %s: %s", name, what, got)
			}
		}
	}
}

func TestNotes(t *testing.T) {
	b := newBench()
	with := func(meta string) []string {
		return b.lines(t, strings.Replace(message("tools/call", `"name":"note"`, "{}"), `"_meta":{`, `"_meta":{`+meta, 1), nil)
	}
	if got := with(""); len(got) != 1 {
		t.Errorf("notes that nobody asked for: %s", got)
	}
	got := with(`"progressToken":"tok","io.modelcontextprotocol/logLevel":"debug",`)
	if len(got) != 5 || got[0] != `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":0,"total":2}}` ||
		got[3] != `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noted"}}` {
		t.Errorf("%s", got)
	}
	if got := with(`"io.modelcontextprotocol/logLevel":"error",`); len(got) != 1 {
		t.Errorf("a log line below the level: %s", got)
	}
}

// TestRounds plays a call that asks for input, and then tries to cheat.
func TestRounds(t *testing.T) {
	b := newBench()
	ask := func(params string) string {
		got := b.lines(t, message("tools/call", params, `{"elicitation":{}}`), nil)
		return got[0]
	}
	first := ask(`"name":"ask","arguments":{"a":1,"b":2}`)
	state, _ := field(t, first, "result", "requestState").(string)
	if field(t, first, "result", "resultType") != "input_required" || state == "" ||
		field(t, first, "result", "inputRequests", "q", "method") != "elicitation/create" {
		t.Fatal(first)
	}
	const answer = `,"inputResponses":{"q":{"action":"accept"},"other":{}}`
	again := func(params, state string) string { return ask(params + answer + `,"requestState":"` + state + `"`) }

	if got := again(`"name":"ask","arguments":{"b":2,"a":1}`, state); field(t, got, "result", "structuredContent", "state") != "kept" {
		t.Errorf("the same request, written otherwise: %s", got)
	}
	for what, got := range map[string]string{
		"other arguments": again(`"name":"ask","arguments":{"a":1,"b":3}`, state),
		"another tool":    again(`"name":"echo","arguments":{"a":1,"b":2}`, state),
		"changed":         again(`"name":"ask","arguments":{"a":1,"b":2}`, state+"-TAMPERED"),
		"cut":             again(`"name":"ask","arguments":{"a":1,"b":2}`, state[:len(state)-2]),
		"made up":         again(`"name":"ask","arguments":{"a":1,"b":2}`, "kept"),
	} {
		if field(t, got, "error", "code") != -32602.0 {
			t.Errorf("%s: %s", what, got)
		}
	}
	large := ask(`"name":"ask","arguments":{"a":9007199254740993}`)
	state2, _ := field(t, large, "result", "requestState").(string)
	if got := again(`"name":"ask","arguments":{"a":9007199254740992}`, state2); field(t, got, "error", "code") != -32602.0 {
		t.Errorf("an argument that a float cannot tell apart: %s", got)
	}
	var stolen []string
	b.say(t.Context(), rpc.JSON, []byte(message("tools/call", `"name":"ask","arguments":{"a":1,"b":2}`+answer+`,"requestState":"`+state+`"`, `{"elicitation":{}}`)),
		other, nil, func(s string) { stolen = append(stolen, s) })
	if field(t, stolen[0], "error", "code") != -32602.0 {
		t.Errorf("another principal's state: %s", stolen)
	}
	if field(t, newBench().lines(t, message("tools/call", `"name":"ask","arguments":{"a":1,"b":2}`+answer+`,"requestState":"`+state+`"`, `{"elicitation":{}}`), nil)[0], "error", "code") != -32602.0 {
		t.Error("another site's state was taken")
	}
}

// TestListen follows a subscription from its acknowledgement to its end.
func TestListen(t *testing.T) {
	b := newBench()
	heard := make(chan string, 10)
	next := func() string {
		select {
		case s := <-heard:
			return s
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was heard")
			return ""
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.say(t.Context(), rpc.JSON, []byte(message("subscriptions/listen",
			`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["t:a","t:none","t:a"]}`, "{}")), local, nil, func(s string) { heard <- s })
	}()
	const sub = `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+sub+`,"notifications":{"toolsListChanged":true,"resourceSubscriptions":["t:a"]}}}`; got != want {
		t.Fatalf(" got %s\nwant %s", got, want)
	}
	b.hub.Announce(agents.Change{Prompts: true}) // not asked for
	b.hub.Announce(agents.Change{URI: "t:b"})    // not asked for
	b.hub.Announce(agents.Change{URI: "t:a"})
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{`+sub+`,"uri":"t:a"}}`; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	b.hub.Announce(agents.Change{Tools: true})
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{`+sub+`}}`; got != want {
		t.Errorf(" got %s\nwant %s", got, want)
	}
	b.end()
	if got := next(); field(t, got, "result", "resultType") != "complete" || field(t, got, "result", "_meta", "io.modelcontextprotocol/subscriptionId") != 1.0 {
		t.Errorf("a graceful end: %s", got)
	}
	<-ended
}

func TestListenBounds(t *testing.T) {
	b := newBench()
	many := `"notifications":{"resourceSubscriptions":["` + strings.Repeat(`x","`, 600) + `x"]}`
	if got := b.lines(t, message("subscriptions/listen", many, "{}"), nil); field(t, got[0], "error", "code") != -32602.0 {
		t.Errorf("600 resources: %.200s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one := message("subscriptions/listen", `"notifications":{}`, "{}")
	const most = 128 // of an owner and of this machine's callers
	fill := func(who rpc.Sender) {
		t.Helper()
		open := make(chan string, most)
		for range most {
			go b.say(ctx, rpc.JSON, []byte(one), who, nil, func(s string) { open <- s })
		}
		for range most {
			if got := <-open; !strings.Contains(got, "acknowledged") {
				t.Errorf("a principal's own: %s", got)
			}
		}
	}
	refused := func(who rpc.Sender, why string) {
		t.Helper()
		b.say(ctx, rpc.JSON, []byte(one), who, nil, func(got string) {
			if field(t, got, "error", "code") != 429.0 {
				t.Errorf("%s: %s", why, got)
			}
		})
	}
	fill(local)
	refused(local, "one too many of one principal")
	fill(owner)
	fill(other) // nobody's fill another's
}

// TestCBOR asks the same in both encodings and gets the same.
func TestCBOR(t *testing.T) {
	b := newBench()
	for _, m := range []string{
		message("server/discover", "", "{}"), message("tools/list", "", "{}"), message("tools/call", `"name":"echo","arguments":{"text":"x","n":2}`, "{}"),
		message("tools/call", `"name":"echo","arguments":{"text":"x","m":2}`, "{}"), message("tools/call", `"name":"fail"`, "{}"),
		message("resources/read", `"uri":"t:b"`, "{}"), message("nothing", "", "{}"),
		strings.Replace(message("tools/list", "", "{}"), `"id":1`, `"id":18446744073709551615`, 1),
		strings.Replace(message("tools/list", "", "{}"), `"id":1`, `"id":"1"`, 1),
	} {
		b.sameInCBOR(t, m)
	}
}

// sameInCBOR checks that a message in CBOR is answered as it is in JSON.
func (b *bench) sameInCBOR(t *testing.T, m string) {
	t.Helper()
	want := sorted(t, b.lines(t, m, nil)[0])
	var got []byte
	b.say(t.Context(), rpc.CBOR, toCBOR(t, m), local, nil, func(s string) { got = []byte(s) })
	var raw rpc.Raw
	if err := rpc.CBOR.Decode(got, &raw); err != nil {
		t.Fatal(err)
	}
	text, err := raw.JSONText()
	if err != nil || sorted(t, string(text)) != want {
		t.Errorf("%s\n cbor %s, %v\n json %s", m, text, err, want)
	}
}

// sorted is the same text for the same value.
func sorted(t testing.TB, text string) string {
	t.Helper()
	var raw rpc.Raw
	if err := rpc.CBOR.Decode(toCBOR(t, text), &raw); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rpc.JSON.Encode(&b, raw); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
