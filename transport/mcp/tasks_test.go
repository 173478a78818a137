package mcp_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"
)

// newTaskBench is a bench whose site hosts an agent that takes tasks. The token's holder is Eve.
func newTaskBench(t *testing.T) *bench {
	h := tasktest.New(t)
	h.May = func(p agents.Principal) bool { return p.ID != "token" }
	h.Owner = func(p agents.Principal) bool { return p.Owner }
	ending, end := context.WithCancel(context.Background())
	n := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, agents.PointURI), Token: "secret"})
	catalog := tools.New(n, n)
	catalog.Tasks = h
	s := mcp.New(ending, n, catalog, mcp.Implementation{Name: "test", Version: "1"}, "")
	return &bench{dispatcher: rpc.NewDispatcher(s.Methods()), end: end}
}

const declared = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`

var stranger = other

// variable matches the texts that differ from run to run.
var variable = regexp.MustCompile(`[A-Z2-7]{26}|\d{4}-\d\d-\d\dT[0-9:]*Z`)

func steady(s string) string {
	return variable.ReplaceAllStringFunc(s, func(found string) string {
		if strings.Contains(found, "-") {
			return "TIME"
		}
		return "ID"
	})
}

// created asks for a task and returns its ID.
func (b *bench) created(t *testing.T, arguments string) string {
	t.Helper()
	got := b.lines(t, message("tools/call", `"name":"ask_agent","arguments":`+arguments, declared), nil)
	id, _ := field(t, got[0], "result", "taskId").(string)
	if len(got) != 1 || id == "" || field(t, got[0], "result", "resultType") != "task" {
		t.Fatalf("no task: %s", got)
	}
	return id
}

// get polls a task until its status is another than working.
func (b *bench) get(t *testing.T, id string) (got string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		got = b.lines(t, message("tasks/get", `"taskId":"`+id+`"`, declared), nil)[0]
		if field(t, got, "result", "status") != "working" {
			return got
		}
	}
	t.Fatalf("it goes on: %s", got)
	return ""
}

// TestTaskTranscript holds the extension's wire to its specification.
func TestTaskTranscript(t *testing.T) {
	const server = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}`
	const base = `"createdAt":"TIME","lastUpdatedAt":"TIME","ttlMs":604800000,"pollIntervalMs":1000`
	result := func(rest string) string { return `{"jsonrpc":"2.0","id":1,"result":{` + rest + `}}` }
	complete := `"resultType":"complete",` + server
	b := newTaskBench(t)
	say := func(method, params string) string {
		return steady(b.lines(t, message(method, params, declared), nil)[0])
	}
	if got, want := say("tools/call", `"name":"ask_agent","arguments":{"agent":"helper","skill":"wait"}`),
		result(`"resultType":"task",`+server+`,"taskId":"ID","status":"working",`+base); got != want {
		t.Errorf("creation\n got %s\nwant %s", got, want)
	}
	id := b.created(t, `{"agent":"helper","skill":"wait"}`)
	for _, c := range []struct{ method, params, want string }{
		{"tasks/cancel", `"taskId":"` + id + `"`, result(complete)},
		{"tasks/cancel", `"taskId":"` + id + `"`, result(complete)}, // again is the same
		{"tasks/update", `"taskId":"` + id + `","inputResponses":{"x":{"action":"accept"}}`, result(complete)},
		{"tasks/get", `"taskId":"nothing"`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"you have no task \"nothing\""}}`},
	} {
		if got := say(c.method, c.params); got != c.want {
			t.Errorf("%s %s\n got %s\nwant %s", c.method, c.params, got, c.want)
		}
	}
	if got := b.get(t, id); field(t, got, "result", "status") != "cancelled" {
		t.Errorf("%s", got)
	}
	for _, c := range []struct{ arguments, want string }{
		{`{"agent":"helper","skill":"echo","arguments":{"n":1}}`,
			result(complete + `,"taskId":"ID","status":"completed","statusMessage":"repeating",` + base + `,"result":{` + complete +
				`,"content":[{"type":"text","text":"{\"id\":\"ID\",\"agent\":\"helper\",\"skill\":\"echo\",\"state\":\"completed\",\"says\":\"repeating\",\"created\":\"TIME\",\"changed\":\"TIME\",\"result\":{\"n\":1}}"}],` +
				`"structuredContent":{"id":"ID","agent":"helper","skill":"echo","state":"completed","says":"repeating","created":"TIME","changed":"TIME","result":{"n":1}}}`)},
		{`{"agent":"helper","skill":"fail"}`,
			result(complete + `,"taskId":"ID","status":"completed","statusMessage":"the tank is empty",` + base +
				`,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"},"agentsite/fault":"unsafe"},` +
				`"content":[{"type":"text","text":"unsafe: task ID failed: the tank is empty"}],"isError":true}`)},
		{`{"agent":"helper","skill":"crash"}`,
			result(complete + `,"taskId":"ID","status":"failed","statusMessage":"a defect",` + base + `,"error":{"code":-32603,"message":"a defect"}`)},
		{`{"agent":"helper","skill":"question"}`,
			result(complete + `,"taskId":"ID","status":"input_required",` + base + `,"inputRequests":{"colour":{"method":"elicitation/create","params":` +
				`{"message":"Which colour?","mode":"form","requestedSchema":{"properties":{"answer":{"enum":["red","green"],"title":"Answer","type":"string"}},"required":["answer"],"type":"object"}}}}`)},
	} {
		if got := steady(b.get(t, b.created(t, c.arguments))); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.arguments, got, c.want)
		}
	}
	got := b.lines(t, message("server/discover", "", "{}"), nil)[0]
	if field(t, got, "result", "capabilities", "extensions", "io.modelcontextprotocol/tasks") == nil {
		t.Errorf("no extension: %s", got)
	}
}

// TestTaskAnswers checks what counts as an answer, and what does not.
func TestTaskAnswers(t *testing.T) {
	b := newTaskBench(t)
	update := func(id, responses string) string {
		return b.lines(t, message("tasks/update", `"taskId":"`+id+`","inputResponses":`+responses, declared), nil)[0]
	}
	id := b.created(t, `{"agent":"helper","skill":"question"}`)
	b.get(t, id)
	for _, wrong := range []string{`7`, `{"action":"accept"}`, `{"action":"accept","content":{"answer":"blue"}}`, `{"action":"accept","content":{"answer":{}}}`,
		`{"content":{"answer":"red"}}`, `{"action":"accept","content":{"a":"red","b":"red"}}`} {
		if got := update(id, `{"colour":`+wrong+`}`); field(t, got, "error", "code") != -32602.0 {
			t.Errorf("%s: %s", wrong, got)
		}
	}
	for _, ignored := range []string{`{}`, `{"other":{"action":"accept","content":{"answer":"red"}}}`, `{"colour":{"action":"cancel"}}`} {
		if got := update(id, ignored); field(t, got, "result", "resultType") != "complete" {
			t.Errorf("%s: %s", ignored, got)
		}
	}
	if got := b.get(t, id); field(t, got, "result", "status") != "input_required" {
		t.Fatalf("%s", got)
	}
	update(id, `{"colour":{"action":"accept","content":{"answer":"red"}}}`)
	if got := b.get(t, id); field(t, got, "result", "result", "structuredContent", "result", "colour") != "red" {
		t.Errorf("%s", got)
	}
	declined := b.created(t, `{"agent":"helper","skill":"question"}`)
	b.get(t, declined)
	update(declined, `{"colour":{"action":"decline"}}`)
	if got := b.get(t, declined); field(t, got, "result", "status") != "cancelled" {
		t.Errorf("%s", got)
	}
}

// TestTaskRefusals checks that a task is its asker's and an owner's, and only for clients that
// have declared the extension in the very request.
func TestTaskRefusals(t *testing.T) {
	b := newTaskBench(t)
	id := b.created(t, `{"agent":"helper","skill":"wait"}`)
	for _, m := range []string{
		message("tasks/get", `"taskId":"`+id+`"`, "{}"), message("tasks/update", `"taskId":"`+id+`"`, `{"elicitation":{}}`),
		message("tasks/cancel", `"taskId":"`+id+`"`, `{"extensions":{}}`), message("subscriptions/listen", `"notifications":{"taskIds":["`+id+`"]}`, "{}"),
	} {
		got := b.lines(t, m, nil)
		if field(t, got[0], "error", "code") != -32021.0 || field(t, got[0], "error", "data", "requiredCapabilities", "extensions", "io.modelcontextprotocol/tasks") == nil {
			t.Errorf("%s: %s", m, got)
		}
	}
	as := func(who rpc.Sender, m string) (got string) {
		b.say(t.Context(), rpc.JSON, []byte(m), who, nil, func(s string) { got = s })
		return got
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		m := message(method, `"taskId":"`+id+`"`, declared)
		if got := as(stranger, m); field(t, got, "error", "code") != -32602.0 || strings.Contains(got, "resultType") {
			t.Errorf("another's %s: %s", method, got)
		}
		name := headers{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}, "Mcp-Name": {id + "x"}}
		if got := b.lines(t, m, name); field(t, got[0], "error", "code") != -32020.0 {
			t.Errorf("%s with another Mcp-Name: %s", method, got)
		}
	}
	if got := as(owner, message("tasks/get", `"taskId":"`+id+`"`, declared)); field(t, got, "result", "status") != "working" {
		t.Errorf("an owner's tasks/get: %s", got)
	}
	if got := as(stranger, message("tools/list", "", declared)); strings.Contains(got, "ask_agent") {
		t.Errorf("one who may ask nobody has the tool: %s", got)
	}
	if got := as(stranger, message("tools/call", `"name":"ask_agent","arguments":{"agent":"helper","skill":"echo"}`, declared)); field(t, got, "result", "_meta", "agentsite/fault") != "denied" {
		t.Errorf("one who may ask nobody asks: %s", got)
	}
	none := newBench()
	if got := none.lines(t, message("tasks/get", `"taskId":"x"`, declared), nil); field(t, got[0], "error", "code") != -32601.0 {
		t.Errorf("a site without tasks: %s", got)
	}
}

// TestTaskNotifications follows a task by subscription, in both encodings.
func TestTaskNotifications(t *testing.T) {
	b := newTaskBench(t)
	id := b.created(t, `{"agent":"helper","skill":"question"}`)
	other := ""
	b.say(t.Context(), rpc.JSON, []byte(message("tools/call", `"name":"ask_agent","arguments":{"agent":"helper","skill":"wait"}`, declared)),
		owner, nil, func(s string) { other = field(t, s, "result", "taskId").(string) })
	heard, ended := make(chan string, 20), make(chan struct{})
	go func() {
		defer close(ended)
		b.say(t.Context(), rpc.JSON, []byte(message("subscriptions/listen", `"notifications":{"taskIds":["`+id+`","`+other+`","x","`+id+`"]}`, declared)),
			local, nil, func(s string) { heard <- s })
	}()
	next := func() string {
		select {
		case s := <-heard:
			return s
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was heard")
			return ""
		}
	}
	const sub = `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
	if got, want := next(), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+sub+`,"notifications":{"taskIds":["`+id+`"]}}}`; got != want {
		t.Fatalf(" got %s\nwant %s", got, want)
	}
	status := func(want string) string {
		for {
			got := next()
			if field(t, got, "method") != "notifications/tasks" || field(t, got, "params", "taskId") != id ||
				field(t, got, "params", "_meta", "io.modelcontextprotocol/subscriptionId") != 1.0 {
				t.Fatalf("%s", got)
			}
			if field(t, got, "params", "status") == want {
				return got
			}
		}
	}
	if got := status("input_required"); field(t, got, "params", "inputRequests", "colour", "method") != "elicitation/create" {
		t.Errorf("%s", got)
	}
	b.lines(t, message("tasks/update", `"taskId":"`+id+`","inputResponses":{"colour":{"action":"accept","content":{"answer":"green"}}}`, declared), nil)
	if got := status("completed"); field(t, got, "params", "result", "structuredContent", "result", "colour") != "green" {
		t.Errorf("%s", got)
	}
	b.end()
	if got := next(); field(t, got, "result", "resultType") != "complete" {
		t.Errorf("%s", got)
	}
	<-ended
}

// TestTaskEncodings asks about tasks in CBOR and gets what JSON says.
func TestTaskEncodings(t *testing.T) {
	b := newTaskBench(t)
	id := b.created(t, `{"agent":"helper","skill":"echo","arguments":{"deep":[{"a":null},1.5,"é",18446744073709551615]}}`)
	b.get(t, id)
	asked := strings.Replace(message("tasks/get", `"taskId":"`+id+`"`, declared), `"_meta":{`, `"_meta":{"agentsite/steps":true,`, 1)
	for _, m := range []string{asked, message("tools/call", `"name":"ask_agent"`, "{}"), message("tasks/get", `"taskId":"x"`, declared), message("tasks/cancel", `"taskId":"`+id+`"`, declared)} {
		b.sameInCBOR(t, m)
	}
	steps, _ := field(t, b.lines(t, asked, nil)[0], "result", "_meta", "agentsite/task", "steps").([]any)
	if len(steps) != 1 {
		t.Errorf("steps %v", steps)
	}
}

// TestPlainTask checks the tool for clients without the extension: it waits, asks where the
// client can be asked, and is called again otherwise.
func TestPlainTask(t *testing.T) {
	b := newTaskBench(t)
	call := func(arguments, capabilities string) string {
		t.Helper()
		got := b.lines(t, message("tools/call", `"name":"ask_agent","arguments":`+arguments, capabilities), nil)
		return got[len(got)-1]
	}
	structured := func(got string, path ...string) any {
		t.Helper()
		return field(t, got, append([]string{"result", "structuredContent"}, path...)...)
	}
	if got := call(`{"agent":"helper","skill":"echo","arguments":{"a":[true]}}`, "{}"); structured(got, "state") != string(task.Completed) || structured(got, "result", "a") == nil {
		t.Errorf("%s", got)
	}
	if got := call(`{"agent":"helper","skill":"fail"}`, "{}"); field(t, got, "result", "isError") != true || field(t, got, "result", "_meta", "agentsite/fault") != "unsafe" {
		t.Errorf("%s", got)
	}
	long := call(`{"agent":"helper","skill":"wait","wait_seconds":0}`, "{}")
	id, _ := structured(long, "id").(string)
	if structured(long, "state") == string(task.Completed) || !strings.Contains(structured(long, "next").(string), id) {
		t.Errorf("%s", long)
	}
	if got := call(`{"task":"`+id+`","cancel":true}`, "{}"); structured(got, "state") != string(task.Canceled) {
		t.Errorf("%s", got)
	}

	asks := call(`{"agent":"helper","skill":"question"}`, "{}")
	id, _ = structured(asks, "id").(string)
	if structured(asks, "state") != string(task.InputRequired) || structured(asks, "question", "text") != "Which colour?" {
		t.Fatalf("%s", asks)
	}
	if got := call(`{"task":"`+id+`","answer":"blue"}`, "{}"); field(t, got, "result", "_meta", "agentsite/fault") != "invalid" {
		t.Errorf("%s", got)
	}
	if got := call(`{"task":"`+id+`","answer":"red"}`, "{}"); structured(got, "result", "colour") != "red" {
		t.Errorf("%s", got)
	}

	const again = `{"agent":"helper","skill":"question"}`
	round := call(again, `{"elicitation":{}}`)
	state, _ := field(t, round, "result", "requestState").(string)
	if field(t, round, "result", "resultType") != "input_required" || state == "" || field(t, round, "result", "inputRequests", "colour") == nil {
		t.Fatalf("%s", round)
	}
	answered := b.lines(t, message("tools/call", `"name":"ask_agent","arguments":`+again+`,"requestState":"`+state+
		`","inputResponses":{"colour":{"action":"accept","content":{"answer":"green"}}}`, `{"elicitation":{}}`), nil)
	if got := answered[len(answered)-1]; structured(got, "result", "colour") != "green" {
		t.Errorf("%s", got)
	}

	list := call(`{}`, "{}")
	all, _ := structured(list, "tasks").([]any)
	if len(all) != 5 || structured(list, "agents") == nil {
		t.Errorf("%s", list)
	}
	for _, wrong := range []string{`{"agent":"helper","task":"x"}`, `{"skill":"echo"}`, `{"cancel":true}`, `{"task":"x","cancel":true,"answer":"y"}`, `{"agent":"helper","nothing":1}`,
		`{"agent":"nobody"}`, `{"agent":"helper","skill":"echo","wait_seconds":1e9}`, `{"task":"x"}`} {
		if got := call(wrong, declared); field(t, got, "result", "_meta", "agentsite/fault") != "invalid" {
			t.Errorf("%s: %s", wrong, got)
		}
	}
}

// TestCancelWithoutPlace: canceling a task, which releases its leases, takes no slot of waiting
// calls, and is served although a stream is full, as tasks/cancel is.
func TestCancelWithoutPlace(t *testing.T) {
	h := tasktest.New(t)
	n := node.New(node.Parts{Hub: node.NewHub(nil, forgetful{}, agents.PointURI), Token: "secret"})
	catalog := tools.New(n, n)
	catalog.Tasks = h
	full := false
	catalog.Hold = func(agents.Principal) (func(), error) {
		if full {
			return nil, device.Faultf(device.Busy, "too many wait")
		}
		return func() {}, nil
	}
	s := mcp.New(t.Context(), n, catalog, mcp.Implementation{Name: "test", Version: "1"}, "")
	b := &bench{dispatcher: rpc.NewDispatcher(s.Methods()), end: func() {}}
	call := func(arguments string) string {
		return b.lines(t, message("tools/call", `"name":"ask_agent","arguments":`+arguments, "{}"), nil)[0]
	}
	id := b.created(t, `{"agent":"helper","skill":"wait"}`)
	full = true
	if got := call(`{"task":"` + id + `"}`); field(t, got, "result", "_meta", "agentsite/fault") != "busy" {
		t.Errorf("to look: %s", got)
	}
	if got := call(`{"task":"` + id + `","cancel":true}`); field(t, got, "result", "structuredContent", "state") != "canceled" {
		t.Errorf("to cancel: %s", got)
	}
	for arguments, want := range map[string]bool{`{"task":"x","cancel":true}`: true, `{"task":"x"}`: false, `{"agent":"x"}`: false, `7`: false} {
		if got := mcp.Urgent("tools/call", rpc.RawJSON([]byte(`{"name":"ask_agent","arguments":`+arguments+`}`))); got != want {
			t.Errorf("%s is urgent: %t", arguments, got)
		}
	}
}
