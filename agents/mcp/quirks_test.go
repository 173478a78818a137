package mcp

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// quirk is a child that does something differently. ID stands for that of the request.
type quirk struct {
	banner string // it writes at its start
	newest bool   // it knows 2026-07-28 and nothing else
	exits  bool   // at a first message that is not initialize
	answer string // to a call
	kind   device.FaultKind
	says   string // in its answer, or in the fault
	skips  bool   // lines are left out
}

const good = `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"rain"}]}}`

// result is an answer with a result.
func result(text string) string { return `{"jsonrpc":"2.0","id":ID,"result":` + text + "}" }

// quirks are what children do, by where it was reported.
var quirks = map[string]quirk{
	"open-jarvis/OpenJarvis#752: a banner":                      {banner: "Weather MCP Server running on stdio\n\nnpm notice New version\n", answer: good, says: "rain", skips: true},
	"thedotmack/claude-mem#396: a log line during a call":       {answer: "[INFO] fetching\n" + `{"level":30,"msg":"fetching"}` + "\n" + good, says: "rain", skips: true},
	"robotmcp/ros-mcp-server#174: other JSON":                   {answer: "[1,2]\n\"x\"\n" + good, says: "rain", skips: true},
	"microsoft/playwright-mcp#1410: half an emoji":              {answer: result(`{"content":[{"type":"text","text":"temp \ud83d"}]}`), says: "temp \ufffd"},
	"inkeep/open-knowledge#472: the other half":                 {answer: result(`{"content":[{"type":"text","text":"\ude00 temp \ud83d\ude00"}]}`), says: "\ufffd temp \U0001F600"},
	"elizaOS/eliza#23686: Latin-1":                              {answer: result("{\"content\":[{\"type\":\"text\",\"text\":\"12 \xb0C\"}]}"), says: "12 \ufffdC"},
	"Python: NaN":                                               {answer: result(`{"content":[{"type":"text","text":"NaN \"NaN\" \\"}],"structuredContent":{"t":NaN,"u":[-Infinity,1]}}`), says: `NaN "NaN" \`},
	"nota/gyazo-mcp-server#129: a picture as data URI":          {answer: result(`{"content":[{"type":"image","data":"data:image/png;base64,iVBORw0KGgo=","mimeType":"image/png"}]}`), kind: device.Invalid, says: "no image"},
	"an unknown type of content":                                {answer: result(`{"content":[{"type":"video","data":"x"},{"type":"text","text":"rain"}]}`), says: "video"},
	"content that is a text":                                    {answer: result(`{"content":"rain"}`), says: "rain"},
	"content that is one part":                                  {answer: result(`{"content":{"type":"text","text":"rain"}}`), says: "rain"},
	"a text that is a number":                                   {answer: result(`{"content":[{"type":"text","text":12.5}]}`), says: "12.5"},
	"isError as a text":                                         {answer: result(`{"isError":"true","content":[{"type":"text","text":"no such place"}]}`), kind: device.Invalid, says: "no such place"},
	"isError false as a text":                                   {answer: result(`{"isError":"false","content":[{"type":"text","text":"rain"}]}`), says: "rain"},
	"an ID as a text":                                           {answer: strings.Replace(good, "ID", `"ID"`, 1), says: "rain"},
	"no version of JSON-RPC":                                    {answer: strings.Replace(good, `"jsonrpc":"2.0",`, "", 1), says: "rain"},
	"an error that is a text":                                   {answer: `{"jsonrpc":"2.0","id":ID,"error":"no such place"}`, kind: device.Invalid, says: "no such place"},
	"a result that is a text":                                   {answer: result(`"rain"`), kind: device.UnknownOutcome, says: "goes on"},
	"a name twice":                                              {answer: result(`{"content":[],"content":[]}`), kind: device.UnknownOutcome, says: "goes on"},
	"nested too deep":                                           {answer: result(strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)), kind: device.UnknownOutcome, says: "goes on"},
	"2 MiB":                                                     {answer: result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 2*maxMessage) + `"}]}`), kind: device.UnknownOutcome, says: "goes on"},
	"laravel/mcp#341: 2026-07-28 alone":                         {newest: true, answer: result(`{"resultType":"complete","content":[{"type":"text","text":"rain"}]}`), says: "rain"},
	"SEP-2663: a task":                                          {newest: true, answer: result(`{"resultType":"task","taskId":"1","status":"working"}`), kind: device.UnknownOutcome, says: "task"},
	"an unknown type of result":                                 {newest: true, answer: result(`{"resultType":"riddle"}`), kind: device.UnknownOutcome, says: "riddle"},
	"SEP-2322: input is required":                               {newest: true, answer: result(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"your key?","requestedSchema":{"type":"object","properties":{}}}}}}`), kind: device.Denied, says: "asks"},
	"modelcontextprotocol/rust-sdk: it ends without initialize": {exits: true, answer: good, says: "rain"},
}

func (q *quirk) dial(starts *int) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	*starts++
	go func() {
		defer theirs.Close()
		io.WriteString(theirs, q.banner)
		in := bufio.NewReader(theirs)
		for begun := false; ; begun = true {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var m struct {
				ID     jsontext.Value `json:"id"`
				Method string         `json:"method"`
			}
			if json.Unmarshal(line, &m) != nil || m.ID == nil {
				continue
			}
			if q.exits && !begun && m.Method != "initialize" {
				return
			}
			answer := `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no such method"}}`
			switch {
			case m.Method == "server/discover" && q.newest:
				answer = result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public"}`)
			case m.Method == "initialize" && q.newest:
				answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"only 2026-07-28","data":{"supported":["2026-07-28"]}}}`
			case m.Method == "initialize":
				answer = result(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}`)
			case m.Method == "tools/list":
				answer = result(`{"resultType":"complete","ttlMs":3600000,` + strings.TrimPrefix(listed, "{"))
			case m.Method == "tools/call" && strings.Contains(string(line), `"hang"`):
				continue
			case m.Method == "tools/call" && strings.Contains(string(line), `"good"`):
				answer = good
			case m.Method == "tools/call":
				answer = q.answer
			}
			io.WriteString(theirs, strings.ReplaceAll(answer, "ID", string(m.ID))+"\n")
		}
	}()
	return ours, nil
}

// TestQuirks: what children do differently ends no child and no other call.
func TestQuirks(t *testing.T) {
	for name, q := range quirks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				starts := 0
				h := new(hanging)
				a, end := h.run(t)
				defer end()
				a.world.Dial = func(context.Context, *Agent) (io.ReadWriteCloser, error) { return q.dial(&starts) }
				other := make(chan error)
				leaving, leave := context.WithCancel(t.Context())
				waits := callForecast
				waits.Args = jsonArgs(`{"place":"hang"}`)
				go func() {
					_, err := a.Call(leaving, noPrincipal, waits)
					other <- err
				}()
				synctest.Wait()
				res, err := a.Call(t.Context(), noPrincipal, callForecast)
				says := ""
				for _, part := range res.Content {
					says += part.Text
				}
				if err != nil {
					says = err.Error()
				}
				if kindOf(err) != q.kind || !strings.Contains(says, q.says) {
					t.Errorf("%q, %v", says, err)
				}
				again := callForecast
				again.Args = jsonArgs(`{"place":"good"}`)
				if _, err := a.Call(t.Context(), noPrincipal, again); err != nil || starts > 1 && !q.exits {
					t.Errorf("the next call: %v after %d starts", err, starts)
				}
				leave()
				if err := <-other; kindOf(err) == device.UnknownOutcome {
					t.Errorf("a call beside it: %v", err)
				}
				if rep := a.Report(t.Context()); strings.Contains(rep.Says, "left out") != q.skips {
					t.Errorf("%+v", rep)
				}
				time.Sleep(callTime + time.Second) // it is probed
				synctest.Wait()
				a.mu.Lock()
				c := a.child
				a.mu.Unlock()
				if c == nil || c.over.Load() {
					t.Error("it was ended")
				}
			})
		})
	}
}

// TestManySkipped: lines that are no messages are bounded as messages are.
func TestManySkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quirk{banner: strings.Repeat("hello\n", 10_000), answer: good}
		starts := 0
		a, end := new(hanging).run(t)
		defer end()
		a.world.Dial = func(context.Context, *Agent) (io.ReadWriteCloser, error) { return q.dial(&starts) }
		if err := callOf(t.Context(), a); kindOf(err) != device.Offline || len(err.Error()) > 1000 {
			t.Errorf("%.2000v", err)
		}
	})
}

// TestFreshList: a child of 2026-07-28 that has its list kept for an hour is asked for it anew.
func TestFreshList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quirk{newest: true, answer: good}
		starts, lists := 0, 0
		a, end := new(hanging).run(t)
		defer end()
		a.world.Dial = func(context.Context, *Agent) (io.ReadWriteCloser, error) {
			rw, err := q.dial(&starts)
			return &counted{rw, &lists}, err
		}
		for range 2 {
			if _, err := a.Offered(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if lists != 3 { // as it started, and twice
			t.Errorf("it was asked %d times", lists)
		}
	})
}

// counted counts the requests for tools.
type counted struct {
	io.ReadWriteCloser
	lists *int
}

func (c *counted) Write(b []byte) (int, error) {
	if strings.Contains(string(b), `"tools/list"`) {
		*c.lists++
	}
	return c.ReadWriteCloser.Write(b)
}
