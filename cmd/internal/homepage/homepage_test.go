package homepage

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const host = "k5qjb3xz.agentsite.localhost:8473"

// far is a site somewhere. It answers a call by its method, and listens until its context ends.
type far struct {
	hangs bool
	older bool   // it does not know who confirmed a call
	text  string // of its configuration

	arguments string // of the call that waits, "" for some

	mu   sync.Mutex
	got  []rpc.Request
	note func(string, rpc.Raw) // of the last subscription
}

func (f *far) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	if r.Method == discoverMethod {
		if f.older {
			return rpc.RawJSON([]byte(`{"capabilities":{"extensions":{}}}`)), nil
		}
		return rpc.RawJSON([]byte(`{"capabilities":{"extensions":{"agentsite/unconfirmed":{}}}}`)), nil
	}
	f.mu.Lock()
	f.got, f.note = append(f.got, r), note
	hangs := f.hangs
	f.mu.Unlock()
	switch {
	case r.Name == "emergency_stop":
	case hangs || r.Method == listenMethod:
		<-ctx.Done()
		return rpc.Raw{}, ctx.Err()
	case r.Method == "owner/requests":
		return rpc.RawJSON([]byte(`{"of":"owner/requests","requests":[{"handle":"H","who":"kitchen","tool":"switch_output","arguments":` + cmp.Or(f.arguments, `{"on":true}`) + `,"seconds_left":9}]}`)), nil
	case r.Method == "owner/configuration":
		text, err := json.Marshal(map[string]string{"of": r.Method, "text": f.text})
		return rpc.RawJSON(text), err
	case r.Name == "refused":
		return rpc.Raw{}, rpc.Errorf(409, "not now")
	}
	return rpc.RawJSON([]byte(`{"of":"` + r.Method + `"}`)), nil
}

// last returns the method and the parameters of the last request.
func (f *far) last() (method, params string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.got) == 0 {
		return "", ""
	}
	r := f.got[len(f.got)-1]
	text, _ := json.Marshal(r.Params)
	return r.Method, string(text)
}

// home is a home page that somebody looks at.
type home struct {
	*Home
	t    *testing.T
	keys peer.Passkeys
	boards
	token string
	acts  []Act
	says  error // the person at the terminal
	wait  func(context.Context) error
}

func newHome(t *testing.T, sites ...peer.OwnSite) *home {
	h := &home{t: t, keys: peer.Person{Folder: state.Folder(t.TempDir())}.Passkeys()}
	h.Home = New(Options{
		Origin: "http://" + host, Passkeys: &h.keys, Boards: &h.boards,
		User: identity.New().ID(), Hosts: []string{host}, List: func() []peer.OwnSite { return sites },
		Confirm: func(ctx context.Context, a Act) error {
			if h.wait != nil {
				return h.wait(ctx)
			}
			h.acts = append(h.acts, a)
			return h.says
		},
	})
	h.token = h.signIn(len(sites))
	return h
}

// signIn begins a session, which has so many sites, and returns its token.
func (h *home) signIn(sites int) string {
	h.t.Helper()
	_, key, _ := strings.Cut(h.Link("", time.Minute), "=")
	var told struct {
		Token string `json:"token"`
		Sites []struct {
			URL string `json:"url"`
		} `json:"sites"`
	}
	err := json.Unmarshal([]byte(h.post(h.t.Context(), "/page/session", `{"key":"`+key+`"}`, nil)), &told)
	if err != nil || len(told.Sites) != sites {
		h.t.Fatal(told, err)
	}
	return told.Token
}

func own(name string, f *far) peer.OwnSite {
	return peer.OwnSite{Name: name, Owner: true, Caller: f, Renew: func(context.Context) error { return nil }}
}

// recorder also passes on what is written at once.
type recorder struct {
	*httptest.ResponseRecorder
	to io.Writer
}

func (r recorder) Write(b []byte) (int, error) {
	if r.to != nil {
		return r.to.Write(b)
	}
	return r.ResponseRecorder.Write(b)
}

// post posts JSON and returns the answer, or writes it to a writer as it comes.
func (h *home) post(ctx context.Context, path, body string, to io.Writer) string {
	r := httptest.NewRequestWithContext(ctx, "POST", "http://"+host+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Mcp-Protocol-Version", rpc.Revision)
	r.Header.Set("Authorization", "Bearer "+h.token)
	w := recorder{httptest.NewRecorder(), to}
	h.Handler.ServeHTTP(w, r)
	return w.Body.String()
}

// call calls a method of a site and returns the code of its error, 0 for a result.
func (h *home) call(site, method, params string) int {
	h.t.Helper()
	var answer struct {
		Result struct {
			Of string `json:"of"`
		} `json:"result"`
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	text := h.post(h.t.Context(), "/at/"+site+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, nil)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Error.Code == 0 && answer.Result.Of != method {
		h.t.Errorf("%s %s: %s", site, method, text)
	}
	return answer.Error.Code
}

// TestForward: calls reach their site as they are, but for the word that no person confirmed them, which the
// page cannot take away.
func TestForward(t *testing.T) {
	shed, roof := new(far), new(far)
	h := newHome(t, own("shed", shed), own("roof", roof))
	for params, want := range map[string]string{
		`{"name":"set_level","arguments":{"output":"a/b","value":1},"_meta":{"x":1}}`: `{"_meta":{"agentsite/unconfirmed":true,"x":1},"arguments":{"output":"a/b","value":1},"name":"set_level"}`,
		`{"name":"set_level","_meta":{"agentsite/unconfirmed":false}}`:                `{"_meta":{"agentsite/unconfirmed":true},"name":"set_level"}`,
		`{"name":"set_level"}`: `{"_meta":{"agentsite/unconfirmed":true},"name":"set_level"}`,
	} {
		if code := h.call("shed", "tools/call", params); code != 0 {
			t.Errorf("%s: %d", params, code)
		}
		if method, got := shed.last(); method != "tools/call" || got != want {
			t.Errorf("%s: %s %s", params, method, got)
		}
	}
	if method, _ := roof.last(); method != "" {
		t.Errorf("the other site got %s", method)
	}
	ids := make(map[rpc.ID]bool)
	for _, r := range shed.got {
		ids[r.ID] = true
		if r.Version != rpc.Revision || r.Name != "set_level" || r.Repeatable {
			t.Errorf("%+v", r)
		}
	}
	if len(ids) != len(shed.got) {
		t.Error("two requests have one ID")
	}
	for method, want := range map[string]int{
		"claim/prove": -32601, "grant/present": -32601, "initialize": -32601, "": -32600,
	} {
		if code := h.call("shed", method, "{}"); code != want {
			t.Errorf("%s: %d", method, code)
		}
	}
	if code := h.call("shed", "tools/call", `{"name":"refused"}`); code != 409 {
		t.Error(code)
	}
	if text := h.post(t.Context(), "/at/barn/mcp", "{}", nil); !strings.Contains(text, `"error"`) {
		t.Error(text)
	}
	h.token = "x"
	if text := h.post(t.Context(), "/at/shed/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil); !strings.Contains(text, `"error"`) {
		t.Error(text)
	}
}

// TestOlderSite: a site that would take a move of the page for its owner's approval gets none, but what returns
// outputs to safe and what only reads, and nothing is refused where the user is no owner.
func TestOlderSite(t *testing.T) {
	f := &far{older: true}
	h := newHome(t, own("shed", f), peer.OwnSite{Name: "other", Caller: f})
	for tool, want := range map[string]int{
		"set_level": 403, "switch_output": 403, "ask_agent": 403, "": 403, "another": 403,
		"emergency_stop": 0, "release_output": 0, "read_points": 0, "site_status": 0,
	} {
		before := len(f.got)
		code := h.call("shed", callMethod, `{"name":"`+tool+`","_meta":{"x":1}}`)
		if code != want || (len(f.got) > before) != (want == 0) {
			t.Errorf("%s: %d, %d calls", tool, code, len(f.got)-before)
		}
		if code := h.call("other", callMethod, `{"name":"`+tool+`"}`); code != 0 {
			t.Errorf("%s without the owner's key: %d", tool, code)
		}
	}
}

// TestYou: a session is told who it is on each site, which on the user's own machine is not their key.
func TestYou(t *testing.T) {
	h := newHome(t, peer.OwnSite{Name: "here", You: "local", Caller: new(far)}, peer.OwnSite{Name: "shed", You: "did:key:z6MkAnn", Caller: new(far)})
	for i, want := range []string{"local", "did:key:z6MkAnn"} {
		if you := h.list()[i].You; you != want {
			t.Errorf("%q is told, want %q", you, want)
		}
	}
}

// TestMethods: every method of MCP is forwarded.
func TestMethods(t *testing.T) {
	for method := range new(mcp.Server).Methods() {
		if !slices.Contains(forwarded, method) {
			t.Errorf("%s is not", method)
		}
	}
}

// TestOwnersActs: what only reads passes; everything else of an owner's is done after a yes to exactly its
// parameters, and exists on the user's own sites only.
func TestOwnersActs(t *testing.T) {
	f := new(far)
	h := newHome(t, own("shed", f), peer.OwnSite{Name: "other", Caller: f})
	reads := []string{"journal", "access", "configuration", "check", "agents", "requests", "health", "public", "routes", "try", "version", "shared-agents", "export-agent", "find", "drivers", "scan", "draft", "pinout", "doctor", "schema", "phones", "trial", "log"}
	for method, row := range owners() {
		before := len(h.acts)
		params := `{"name":"H"}`
		if method == string(acts.ConfigureAct) {
			params = `{"text":"new","digest":"` + acts.Digest(nil) + `"}`
		}
		for says, want := range map[error]int{nil: 0, device.Faultf(device.Denied, "no"): 403} {
			h.says = says
			f.got = nil
			code := h.call("shed", method, params)
			_, sent := f.last()
			asked := len(h.acts) > before
			before = len(h.acts)
			switch read := slices.Contains(reads, strings.TrimPrefix(method, "owner/")); {
			case asked == read:
				t.Errorf("%s (effect %v) asks the person: %v", method, row.Effect, asked)
			case read && code != 0, !read && code != want:
				t.Errorf("%s is answered by %d", method, code)
			case code == 0 && sent != params:
				t.Errorf("%s is sent with %s", method, sent)
			case code != 0 && slices.ContainsFunc(f.got, func(r rpc.Request) bool { return r.Method == method }):
				t.Errorf("%s is sent after a no", method)
			case asked && string(h.acts[before-1].Params) != params:
				t.Errorf("the person saw %s", h.acts[before-1].Params)
			}
		}
		if code := h.call("other", method, params); code != -32601 {
			t.Errorf("%s on somebody else's site: %d", method, code)
		}
	}
	h.says = nil
	if code := h.call("shed", "owner/approve", `{"name":"H"}`); code != 0 {
		t.Error(code)
	}
	if a := h.acts[len(h.acts)-1]; a.Call == nil || a.Call.Who != "kitchen" || string(a.Call.Args) != `{"on":true}` {
		t.Errorf("the person saw %+v", a)
	}
	if code := h.call("shed", "owner/approve", `{"name":"gone"}`); code != 410 {
		t.Error(code)
	}
}

// TestLongAct: what a person cannot read to its end is not asked.
func TestLongAct(t *testing.T) {
	long := strings.Repeat("a", 40<<10)
	f := &far{arguments: `{"text":"` + long + `"}`}
	h := newHome(t, own("shed", f))
	for method, params := range map[string]string{
		"owner/revoke":    `{"name":"G","more":"` + long + `"}`,
		"owner/configure": `{"text":"new","digest":"` + acts.Digest(nil) + `","more":"` + long + `"}`,
		"owner/approve":   `{"name":"H"}`, // of a call with much in it
	} {
		if code := h.call("shed", method, params); code != -32602 || len(h.acts) > 0 {
			t.Errorf("%s: %d, the person was asked %d times", method, code, len(h.acts))
			h.acts = nil
		}
	}
}

// TestSubscription: the page hears of its own subscriptions, by their IDs. One that does not keep up ends.
func TestSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(far)
		h := newHome(t, own("shed", f))
		listen := func(ctx context.Context, to io.Writer) {
			h.post(ctx, "/at/shed/mcp", `{"jsonrpc":"2.0","id":7,"method":"`+listenMethod+`","params":{"_meta":{}}}`, to)
		}
		note := func(id rpc.ID, text string) {
			tag, _ := json.Marshal(id)
			f.note("notifications/agentsite/values", rpc.RawJSON([]byte(`{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(tag)+`},"says":"`+text+`"}`)))
		}
		var heard bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		go listen(ctx, &heard)
		synctest.Wait()
		id := f.got[len(f.got)-1].ID
		note(id, "mine")
		note(rpc.NumberID(7), "another")
		synctest.Wait()
		cancel()
		synctest.Wait()
		if text := heard.String(); !strings.Contains(text, `"io.modelcontextprotocol/subscriptionId":7`) || !strings.Contains(text, "mine") || strings.Contains(text, "another") {
			t.Errorf("the page heard %s", text)
		}

		slow, page := io.Pipe()
		over := make(chan bool)
		go func() {
			listen(t.Context(), page)
			close(over)
		}()
		synctest.Wait()
		id = f.got[len(f.got)-1].ID
		for range maxNotes + 2 {
			note(id, "flood")
		}
		go io.Copy(io.Discard, slow)
		<-over
		slow.Close()
	})
}

// TestHungSite: a site that hangs keeps no connection of the browser from others, nor from a stop.
func TestHungSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, well := &far{hangs: true}, new(far)
		h := newHome(t, own("hung", hung), own("well", well))
		var running sync.WaitGroup
		running.Go(func() {
			if code := h.call("hung", "tools/list", "{}"); code != 504 {
				t.Errorf("a call that is not answered: %d", code)
			}
		})
		time.Sleep(silence + time.Second)
		began := time.Now()
		if code := h.call("hung", "tools/list", "{}"); code != 502 {
			t.Errorf("a further call: %d", code)
		}
		if code := h.call("well", "tools/list", "{}"); code != 0 {
			t.Errorf("another site: %d", code)
		}
		if code := h.call("hung", "tools/call", `{"name":"emergency_stop"}`); code != 0 {
			t.Errorf("the stop: %d", code)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		running.Wait()
	})
}

// TestSlowCall: a call that takes long says nothing of a site that is heard of meanwhile.
func TestSlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &far{hangs: true} // in all calls that are not a subscription's notes or a stop
		h := newHome(t, own("shed", f))
		ctx, cancel := context.WithCancel(t.Context())
		listen := `{"jsonrpc":"2.0","id":7,"method":"` + listenMethod + `","params":{"_meta":{}}}`
		go h.post(ctx, "/at/shed/mcp", listen, io.Discard)
		synctest.Wait()
		id, _ := json.Marshal(f.got[len(f.got)-1].ID)
		tell := f.note
		slow := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capture_image"}}`
		go h.post(ctx, "/at/shed/mcp", slow, io.Discard)
		for range 5 {
			time.Sleep(time.Second)
			tell("notifications/x", rpc.RawJSON([]byte(`{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(id)+`}}`)))
		}
		f.mu.Lock()
		f.hangs = false
		f.mu.Unlock()
		if code := h.call("shed", "tools/list", "{}"); code != 0 {
			t.Errorf("a call beside the slow one: %d", code)
		}
		cancel()
		synctest.Wait()
	})
}

// TestCloseWithQuestion: the end of the page withdraws a question at the terminal.
func TestCloseWithQuestion(t *testing.T) {
	f, asked := new(far), make(chan struct{})
	h := newHome(t, own("shed", f))
	h.wait = func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	}
	over := make(chan struct{})
	go func() {
		h.post(t.Context(), "/at/shed/mcp", `{"jsonrpc":"2.0","id":1,"method":"owner/reset","params":{}}`, nil)
		close(over)
	}()
	<-asked
	h.Close()
	<-over
	if method, _ := f.last(); method != "" {
		t.Errorf("the site got %s", method)
	}
}
