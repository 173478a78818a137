//go:build e2e && linux

package public

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents/llm/chat"
	"agentsite/agents/llm/chat/chattest"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/events"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// garden is a place with a soil sensor, a valve and a gardener, which is a language model.
type garden struct {
	*place
	hook     *events.Receiver
	valve    string        // the file with the state of its pin
	moisture atomic.Uint64 // of the soil, in %
	read     atomic.Uint64 // how often the sensor was
	start    func()        // again, with the same data
}

const gardenConfig = `site: { name: garden }
http: { oauth: on, domain: %q, certificate: domain.pem, certificate_key: domain.key, push_hosts: [ %q ] }
devices:
  soil: { driver: http, url: %q, every: 1s, inputs: { moisture: { path: moisture, unit: "%%", range: 0..100 } } }
  valve: { driver: sim, model: relay, min_off: 0s, max_on: 10m, outputs_file: %q }
agents:
  gardener: { kind: llm, model: { url: %q, name: test }, may: read soil, description: says how much the beds need }
`

// newGarden starts a garden at a domain with a certificate of its own.
func newGarden(t *testing.T) *garden {
	t.Helper()
	const name = "garden.example.org"
	g := &garden{hook: events.NewReceiver(t), valve: filepath.Join(harness.TempDir(t), "valve")}
	g.moisture.Store(45)
	sensor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		g.read.Add(1)
		fmt.Fprintf(w, `{"moisture": %d}`, g.moisture.Load())
	}))
	t.Cleanup(sensor.Close)
	model := chattest.New(t, chattest.Plain, advise)
	folder, port := harness.TempDir(t), harness.FreePort(t)
	domain := name + ":" + port
	g.place = &place{url: "https://" + domain + "/mcp", certificate: filepath.Join(folder, "domain.pem")}
	selfSigned(t, name, g.certificate, filepath.Join(folder, "domain.key"))
	config := fmt.Sprintf(gardenConfig, domain, g.hook.Host, sensor.URL, g.valve, model.Endpoint())
	argv := g.hook.Program("--listen-https", "127.0.0.1:"+port)
	g.start = func() { t.Helper(); g.Site = harness.StartIn(t, folder, config, nil, argv...) }
	g.start()
	g.claim(t)
	return g
}

// advise answers as a model that reads the soil and says how long to water.
func advise(body []byte) (a chat.Answer) {
	if strings.Contains(string(body), `"role":"tool"`) {
		a.Text = "The bed is dry. Open the valve as long as you may, once."
		return a
	}
	a.Calls = []chat.Call{{ID: "c", Name: "read_points", Arguments: jsontext.Value(`{"points":["soil/moisture"]}`)}}
	return a
}

// valveIs waits until the valve's pin is on or off.
func (g *garden) valveIs(t *testing.T, state string) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, "the valve is "+state, func() bool {
		now, _ := harness.ReadWitness(g.valve)
		return now == state
	})
}

// eventParams and eventResult are those of all methods of events.
type (
	eventParams struct {
		mcp.ParamsBase
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Cursor    *string        `json:"cursor"`
		Delivery  map[string]any `json:"delivery,omitempty"`
	}
	eventResult struct {
		mcp.ResultBase
		Events        []listed `json:"events"`
		ID            string   `json:"id"`
		RefreshBefore string   `json:"refreshBefore"`
		Cursor        *string  `json:"cursor"`
		Truncated     bool     `json:"truncated"`
		HasMore       bool     `json:"hasMore"`
	}
	listParams struct{ mcp.ParamsBase }
	// listed is an event, or a type of events with its ways.
	listed struct {
		events.Occurrence
		Delivery []string `json:"delivery"`
	}
)

// assistant is a scripted client by the Go SDK that signs in, and counts its requests.
type assistant struct {
	http.RoundTripper
	requests atomic.Int64
	session  *mcp.ClientSession
}

func (a *assistant) RoundTrip(r *http.Request) (*http.Response, error) {
	a.requests.Add(1)
	return a.RoundTripper.RoundTrip(r)
}

// uiMIME is the media type of pages for hosts of MCP Apps.
const uiMIME = "text/html;profile=mcp-app"

// newAssistant connects an assistant, which the owner permits something, and nothing further later.
func (g *garden) newAssistant(t *testing.T, may string) *assistant {
	t.Helper()
	a := &assistant{RoundTripper: g.http.Transport}
	by := &http.Client{Transport: a, Timeout: g.http.Timeout}
	can := new(mcp.ClientCapabilities)
	can.AddExtension("io.modelcontextprotocol/events", nil)
	can.AddExtension("io.modelcontextprotocol/ui", map[string]any{"mimeTypes": []string{uiMIME}})
	c := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, &mcp.ClientOptions{Capabilities: can})
	for _, method := range []string{"events/poll", "events/subscribe"} {
		if err := mcp.AddSendingCustomMethod[*eventParams, *eventResult](c, method); err != nil {
			t.Fatal(err)
		}
	}
	if err := mcp.AddSendingCustomMethod[*listParams, *eventResult](c, "events/list"); err != nil {
		t.Fatal(err)
	}
	signIn := g.goSignIn(t, by, func() string { allows := may; may = ""; return allows })
	at := &mcp.StreamableClientTransport{Endpoint: g.url, OAuthHandler: signIn, HTTPClient: by}
	s, err := c.Connect(t.Context(), at, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, g.Log)
	}
	t.Cleanup(func() { s.Close() })
	a.session = s
	return a
}

// call calls a tool that succeeds, and returns its structured result.
func (a *assistant) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	res, err := a.session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil || res.IsError {
		t.Fatalf("%s: %v %+v", tool, err, res)
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// subscribe has events sent to a receiver, and returns the subscription.
func (a *assistant) subscribe(t *testing.T, to *events.Receiver, name string, args map[string]any) *eventResult {
	t.Helper()
	r, err := mcp.CallCustomMethod[*eventParams, *eventResult](t.Context(), a.session, "events/subscribe", &eventParams{
		Name: name, Arguments: args, Delivery: map[string]any{"mode": "webhook", "url": to.URL, "secret": to.Secret},
	})
	if err != nil || r.ID == "" || r.Cursor == nil || r.RefreshBefore == "" {
		t.Fatalf("%s: %v %+v", name, err, r)
	}
	return r
}

// poll returns the IDs of all events after a cursor, and whether some may be missing.
func (a *assistant) poll(
	t *testing.T, name string, args map[string]any, cursor *string,
) (ids []string, truncated bool) {
	t.Helper()
	for more := true; more; {
		p := &eventParams{Name: name, Arguments: args, Cursor: cursor}
		r, err := mcp.CallCustomMethod[*eventParams, *eventResult](t.Context(), a.session, "events/poll", p)
		if err != nil || r.Cursor == nil {
			t.Fatalf("%s: %v %+v", name, err, r)
		}
		for _, e := range r.Events {
			ids = append(ids, e.EventID)
		}
		cursor, more, truncated = r.Cursor, r.HasMore, truncated || r.Truncated
	}
	return ids, truncated
}

// awaitEvents waits for a subscription's events under so many IDs, or, with gaps, for the message that some may be
// missing.
func (g *garden) awaitEvents(t *testing.T, of *eventResult, many int, gaps bool) (ids []string, gap bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the receiver has %+v\n%s", g.hook.Deliveries(), g.Log)
		}
	}()
	harness.WaitFor(t, time.Minute, fmt.Sprintf("%d events", many), func() bool {
		ids = nil
		for _, d := range g.hook.Deliveries() {
			switch {
			case d.Subscription != of.ID:
			case d.Type == "gap":
				gap = true
			case d.Type == "" && !slices.Contains(ids, d.EventID):
				ids = append(ids, d.EventID)
			}
		}
		return len(ids) >= many || gaps && gap
	})
	return ids, gap
}

// TestAssistant: over the public URL, an assistant that sleeps is woken when the soil is dry, asks the gardener, looks
// at the chart, waters within its grant, and is told when the valve is back, though the site is killed while it is
// open. Once the owner revokes the grant, it is told so and nothing more.
func TestAssistant(t *testing.T) {
	g := newGarden(t)
	open := harness.Workload(6, 120) // seconds, as its grant has them
	a := g.newAssistant(t, fmt.Sprintf("read *, ask gardener, set valve max %ds", open))

	// It subscribes, and sleeps.
	types, err := mcp.CallCustomMethod[*listParams, *eventResult](t.Context(), a.session, "events/list", &listParams{})
	if err != nil {
		t.Fatalf("%v\n%s", err, g.Log)
	}
	for _, name := range []string{"condition.met", "output.returned"} {
		if !slices.ContainsFunc(types.Events, func(e listed) bool {
			return e.Name == name && slices.Contains(e.Delivery, "webhook")
		}) {
			t.Errorf("%s is not among %+v", name, types.Events)
		}
	}
	dry, back := map[string]any{"when": "soil/moisture < 30 %"}, map[string]any{"output": "valve/relay"}
	drought := a.subscribe(t, g.hook, "condition.met", dry)
	returns := a.subscribe(t, g.hook, "output.returned", back)
	asked, read := a.requests.Load(), g.read.Load()
	g.moisture.Store(31)
	harness.WaitFor(t, time.Minute, "the soil was read some times", func() bool { return g.read.Load() >= read+4 })
	if n := a.requests.Load() - asked; n != 0 || len(g.hook.Deliveries()) != 0 || g.hook.Challenges() == 0 {
		t.Errorf("asleep, it asked %d times, and was told %+v", n, g.hook.Deliveries())
	}

	// It is woken once.
	g.moisture.Store(24)
	g.awaitEvents(t, drought, 1, false)
	if n := a.requests.Load() - asked; n != 0 {
		t.Errorf("it asked %d times before it was woken", n)
	}
	d := g.hook.Deliveries()[0]
	if d.ID != d.EventID || d.Subscription != drought.ID || d.Cursor == "" || d.Timestamp == "" {
		t.Errorf("%+v", d)
	}

	// It asks, and looks.
	advice := a.call(t, "ask_agent", map[string]any{"agent": "gardener", "text": "The soil is dry. What now?"})
	if !strings.Contains(advice, "Open the valve") {
		t.Error(advice)
	}
	a.looks(t)

	// It may not water for longer than its grant has it.
	res, err := a.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "switch_output", Arguments: map[string]any{
		"output": "valve/relay", "on": true, "for_seconds": open + 1,
	}})
	if now, _ := harness.ReadWitness(g.valve); err == nil && !res.IsError || now == "on" {
		t.Errorf("it opens the valve for %d s, which is %q: %v", open+1, now, err)
	}
	a.call(t, "switch_output", map[string]any{"output": "valve/relay", "on": true, "for_seconds": open})
	g.valveIs(t, "on")

	// The site is killed while the valve is open.
	g.Kill(t)
	g.valveIs(t, "off")
	g.start()
	g.owner(t, "clock", "--set") // as whatever synchronises clocks does elsewhere
	_, gap := g.awaitEvents(t, returns, 1, true)
	was, truncated := a.poll(t, "output.returned", back, returns.Cursor)
	t.Logf("after a kill: gap %v; by poll %d returns, truncated %v", gap, len(was), truncated)
	if len(was) > 1 || len(was) == 0 && !truncated {
		t.Errorf("one return is %q, truncated %v", was, truncated)
	}
	valve := a.call(t, "read_points", map[string]any{"points": []string{"valve/relay"}})
	if !strings.Contains(valve, `"value":false`) {
		t.Error(valve)
	}

	// It waters again, and is told when the valve is back. What it was told before has not changed its ID.
	a.call(t, "switch_output", map[string]any{"output": "valve/relay", "on": true, "for_seconds": 1})
	g.valveIs(t, "on")
	g.valveIs(t, "off")
	told, _ := g.awaitEvents(t, returns, len(was)+1, false)
	now, _ := a.poll(t, "output.returned", back, returns.Cursor)
	if !slices.Equal(told, now) || !slices.Equal(now[:len(was)], was) {
		t.Errorf("told %q, by poll %q before and %q now", told, was, now)
	}
	if woken, _ := g.awaitEvents(t, drought, 1, false); len(woken) != 1 {
		t.Errorf("it was woken by %q", woken)
	}

	// Its grant ends.
	g.owner(t, "revoke", "go-sdk")
	ended := func() (all []string) {
		for _, d := range g.hook.Deliveries() {
			if d.Type == "terminated" {
				all = append(all, d.Subscription)
			}
		}
		slices.Sort(all)
		return all
	}
	both := []string{drought.ID, returns.ID}
	slices.Sort(both)
	harness.WaitFor(t, time.Minute, "both subscriptions are over", func() bool { return slices.Equal(ended(), both) })
	last := g.hook.Deliveries()
	read = g.read.Load()
	g.moisture.Store(60)
	harness.WaitFor(t, time.Minute, "the wet soil was read", func() bool { return g.read.Load() >= read+2 })
	g.moisture.Store(20)
	harness.WaitFor(t, time.Minute, "the dry soil was read", func() bool { return g.read.Load() >= read+6 })
	if all := g.hook.Deliveries(); len(all) != len(last) {
		t.Errorf("after its end it is told %+v", all[len(last):])
	}
}

// looks reads the history of the soil, and the page that shows it.
func (a *assistant) looks(t *testing.T) {
	t.Helper()
	list, err := a.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := ""
	for _, tool := range list.Tools {
		if ui, ok := tool.Meta["ui"].(map[string]any); ok && tool.Name == "read_history" {
			at, _ = ui["resourceUri"].(string)
		}
	}
	if !strings.HasPrefix(at, "ui://") {
		t.Errorf("read_history has no page, but %q", at)
		return
	}
	page, err := a.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: at})
	if err != nil || len(page.Contents) != 1 {
		t.Fatal(page, err)
	}
	if c := page.Contents[0]; c.MIMEType != uiMIME || !strings.Contains(strings.ToLower(c.Text), "<!doctype html") {
		t.Errorf("%s: %s %.200s", at, c.MIMEType, c.Text)
	}
	past := a.call(t, "read_history", map[string]any{"point": "soil/moisture", "hours": 0.05})
	if !strings.Contains(past, `"min":24`) {
		t.Error(past)
	}
}
