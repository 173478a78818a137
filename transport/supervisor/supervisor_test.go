package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/principal"
	"agentsite/transport/supervisor/supervisortest"
)

// served is an app with the Supervisor that runs it.
type served struct {
	*App
	there  *supervisortest.Supervisor
	stored atomic.Pointer[string]
}

func serve(t *testing.T) *served {
	s := &served{there: &supervisortest.Supervisor{Token: "right", Discovery: []string{"mcp"}}}
	at := httptest.NewServer(s.there)
	t.Cleanup(at.Close)
	app, err := NewApp(&Client{URL: at.URL, Token: "right"}, "local-agentsite:8099")
	if err != nil {
		t.Fatal(err)
	}
	s.App = app
	s.stored.Store(new(string))
	app.Read = func() string { return *s.stored.Load() }
	app.Write = func(uuid string) error { s.stored.Store(&uuid); return nil }
	return s
}

// TestBroker: the broker is the Supervisor's, its port a number or a text, and a refusal is what the Supervisor says.
func TestBroker(t *testing.T) {
	s := serve(t)
	_, err := s.Client.MQTT(t.Context())
	var refused *Refused
	if !errors.As(err, &refused) || refused.Status != 400 || refused.Says == "" {
		t.Errorf("no broker: %v", err)
	}
	for _, port := range []any{1883, "1883"} {
		s.there.SetBroker(map[string]any{
			"addon": "core_mosquitto", "host": "core-mosquitto", "port": port, "ssl": false, "username": "addons",
			"password": "p", "protocol": "3.1.1",
		})
		if b, err := s.Client.MQTT(t.Context()); err != nil || b != (Broker{"core-mosquitto", "addons", "p", 1883, false}) {
			t.Errorf("%+v, %v", b, err)
		}
	}
	s.there.SetBroker(map[string]any{"host": "x", "port": 70000})
	if b, err := s.Client.MQTT(t.Context()); err == nil {
		t.Error("a port that is none:", b)
	}
	_, err = (&Client{URL: s.Client.URL, Token: "wrong"}).MQTT(t.Context())
	if !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("a wrong token: %v", err)
	}
}

// TestStrange: what is no answer of a Supervisor is an error, is bounded, and the token follows no redirect.
func TestStrange(t *testing.T) {
	var mu sync.Mutex
	tokens := map[string]int{}
	answer := ""
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tokens[r.URL.Path]++
		if answer == "redirect" {
			http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, answer)
	}))
	defer at.Close()
	c := &Client{URL: at.URL, Token: "x"}
	for _, says := range []string{
		"", "no", "{}", `{"result":"ok"}`, `{"result":"ok","data":{"uuid":"../../x"}}`, `{"result":"ok","data":{"uuid":""}}`, "redirect",
		`{"result":"ok","data":{"uuid":"aa","x":"` + strings.Repeat("y", maxAnswer) + `"}}`, `{"result":"error","message":"` + "\\u001b[2J" + `"}`,
	} {
		mu.Lock()
		answer = says
		mu.Unlock()
		_, err := c.Announce(t.Context(), "http://x/mcp")
		if err == nil || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.60q: %v", says, err)
		}
	}
	if tokens["/stolen"] != 0 {
		t.Error("a redirect was followed")
	}
}

// TestGate: Home Assistant's users are one principal while the agent runs and the site is claimed, whatever they show.
// Only the Supervisor reaches the page, and only its network MCP, by the announced path.
func TestGate(t *testing.T) {
	app, err := NewApp(&Client{URL: URL, Token: "x"}, "local-agentsite:8099")
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, what, r.URL.Path) })
	}
	h := app.Handler(says("page"), says("mcp"))
	closed := func() bool {
		r := httptest.NewRequest("GET", "http://x/", nil)
		r.RemoteAddr = "172.30.32.2:1"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code == 503
	}
	if !closed() {
		t.Error("the page is shown before the agent runs")
	}
	if _, err := app.Bearer("", true); err == nil {
		t.Error("somebody is let in before the agent runs")
	}
	app.open(principal.Agent(KindName, KindName))
	for _, tt := range []struct{ from, path, want string }{
		{"172.30.32.2:4000", "/", "page/"},
		{"172.30.32.2:4000", "/mcp", "page/mcp"},
		{"[::ffff:172.30.32.2]:4000", "/", "page/"},
		{"172.30.32.1:4000", app.path, "mcp/mcp"},
		{"172.30.32.1:4000", app.path + "/", "mcp/mcp"},
		{"172.30.32.1:4000", "/", ""},
		{"172.30.32.1:4000", "/mcp", ""},
		{"172.30.32.1:4000", "/mcp/", ""},
		{"172.30.32.1:4000", app.path + "x", ""},
		{"172.30.33.7:4000", "/", ""}, // another app
		{"172.30.33.7:4000", app.path, ""},
		{"192.168.1.20:4000", app.path, ""},
		{"", "/", ""},
	} {
		r := httptest.NewRequest("GET", "http://x"+tt.path, nil)
		r.RemoteAddr = tt.from
		r.Header.Set("X-Forwarded-For", "172.30.32.2") // says nothing
		r.Header.Set("X-Remote-User-Id", "admin")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Body.String(); tt.want != "" && (got != tt.want || w.Code != 200) || tt.want == "" && w.Code != 403 {
			t.Errorf("%s %s: %d %s", tt.from, tt.path, w.Code, got)
		}
	}
	for _, token := range []string{"", "anything"} {
		who, err := app.Bearer(token, true)
		if err != nil || who.Owner || who.ID != "homeassistant:homeassistant" || who.Account == "" {
			t.Errorf("%+v, %v", who, err)
		}
	}
	app.close("over")
	if _, err := app.Key("12D3"); err == nil || !closed() {
		t.Error("somebody is let in after the end")
	}
	for _, bad := range []Client{{URL: "http://supervisor", Token: "x"}, {URL: "https://172.30.32.2", Token: "x"}, {URL: URL}} {
		if _, err := NewApp(&bad, "x:1"); err == nil {
			t.Errorf("%+v", bad)
		}
	}
}

// TestAnnounced: the announcement is made once the site has an owner, repeated by a new run with its new path, and
// withdrawn when it is switched off or the agent removed, but not at the end of the site.
func TestAnnounced(t *testing.T) {
	s := serve(t)
	run := func(mcp bool, cause error) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		a := Kind(World{App: s.App, Claimed: func() bool { return true }}).New().(*Agent)
		a.MCP = mcp
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, principal.Agent(KindName, KindName), nil) }()
		for a.Report(ctx).State != agent.Idle {
			time.Sleep(time.Millisecond)
		}
		if who, err := s.Bearer("", true); err != nil || who.ID == "" {
			t.Error("nobody is let in", err)
		}
		cancel(cause)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	last := func(verb string, count int) supervisortest.Pushed {
		t.Helper()
		all := s.there.Pushed()
		if len(all) != count || all[count-1].Verb != verb {
			t.Fatalf("%+v, want %d, the last a %s", all, count, verb)
		}
		return all[count-1]
	}
	run(true, nil)
	first := last("post", 1)
	if first.Service != "mcp" || first.Config["url"] != "http://local-agentsite:8099"+s.path {
		t.Errorf("%+v", first)
	}
	run(true, nil) // the same again
	last("post", 1)
	s.path = "/mcp/other" // as of another start
	run(true, nil)
	if again := last("post", 2); again.UUID != first.UUID || again.Config["url"] != "http://local-agentsite:8099/mcp/other" {
		t.Errorf("%+v", again)
	}
	run(false, nil)
	last("delete", 3)
	run(false, nil)
	run(true, agent.ErrRemoved)
	last("delete", 5)
	if s.Read() != "" {
		t.Error("what was withdrawn is remembered")
	}
	run(true, nil)
	s.open(principal.Agent(KindName, KindName))
	s.Forget(t.Context()) // the section is there again
	last("post", 6)
	s.close("no section")
	s.Forget(t.Context())
	last("delete", 7)
	s.Forget(t.Context())
	last("delete", 7)
}

// TestLate: a Supervisor that refuses everything does not keep users out, and is asked again with longer pauses.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, err := NewApp(&Client{URL: URL, Token: "x"}, "x:1")
		if err != nil {
			t.Fatal(err)
		}
		app.Read, app.Write = func() string { return "" }, func(string) error { return nil }
		var asked atomic.Int64
		var up atomic.Bool
		before := client.Transport
		defer func() { client.Transport = before }()
		client.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			if !up.Load() {
				return nil, errors.New("connection refused")
			}
			w := httptest.NewRecorder()
			fmt.Fprint(w, `{"result":"ok","data":{"uuid":"00ff"}}`)
			return w.Result(), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		a := Kind(World{App: app, Claimed: func() bool { return true }}).New().(*Agent)
		a.MCP = true
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx, principal.Agent(KindName, KindName), nil) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, err := app.Bearer("", true); err != nil || asked.Load() < 10 || asked.Load() > 22 {
			t.Errorf("%d calls in an hour, %v", asked.Load(), err)
		}
		up.Store(true)
		time.Sleep(retryMax)
		synctest.Wait()
		if a.Report(ctx).State != agent.Idle {
			t.Errorf("%+v", a.Report(ctx))
		}
		calls := asked.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if asked.Load() != calls {
			t.Error("what is announced is announced again and again")
		}
		cancel()
		<-done
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNoApp: the section in a site that is no app says so, and lets nobody in.
func TestNoApp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := Kind(World{Claimed: func() bool { return true }}).New().(*Agent)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, principal.Agent(KindName, KindName), nil) }()
	for a.Report(ctx).State != agent.Waiting {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
