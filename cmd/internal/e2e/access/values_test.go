//go:build e2e

package access

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// requests counts what a client asks, by method.
type requests struct {
	rpc.Caller
	mu sync.Mutex
	n  map[string]int
}

func counted(c rpc.Caller) *requests { return &requests{Caller: c, n: make(map[string]int)} }

func (r *requests) count(method string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n[method]++
}

func (r *requests) Call(ctx context.Context, q rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	r.count(q.Method)
	return r.Caller.Call(ctx, q, note)
}

// only reports an error unless the subscription was all that was asked.
func (r *requests) only(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.n, map[string]int{"subscriptions/listen": 1}) {
		t.Errorf("it asked %v", r.n)
	}
}

// latest holds the last update of a watch.
type latest struct {
	mu      sync.Mutex
	relay   agents.Reading
	stopped bool
	waiting int
}

func (l *latest) take(u agents.Update) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range u.Readings {
		if r.Point == "box/relay" {
			l.relay = r
		}
	}
	for _, s := range u.Stops {
		l.stopped = s.Stopped
	}
	if u.Approvals != nil {
		l.waiting = len(u.Approvals)
	}
	return nil
}

// wait waits until ok holds of what was told.
func (l *latest) wait(t *testing.T, what string, ok func(*latest) bool) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, "the watcher is told that "+what, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return ok(l)
	})
}

// TestWatch: over every carrier a watcher is told values, leases, approvals and the emergency
// stop, and asks nothing but the subscription.
func TestWatch(t *testing.T) {
	r := startOwned(t, "  box: { driver: sim, model: relay, min_off: 0 }\n  gate: { driver: sim, model: relay, min_off: 0, confirm: owner }\n")
	local, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	token, err := os.ReadFile(state.Folder(r.Folder).Path(state.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	overHTTP := func(codec rpc.Codec) rpc.Caller {
		return &web.Client{URL: r.URL + "/mcp", Token: strings.TrimSpace(string(token)), Codec: codec, HTTP: http.DefaultClient}
	}
	socket, err := net.Dial("unix", state.Folder(r.Folder).SocketPath(state.OwnerSocket))
	if err != nil {
		t.Fatal(err)
	}
	stream := rpc.NewStreamClient(socket, rpc.JSON)
	go stream.Run()
	t.Cleanup(func() { stream.Close() })
	host, err := p2p.New(p2p.Options{Key: r.owner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	for i, carrier := range []struct {
		name string
		*requests
	}{
		{"HTTP in JSON", counted(overHTTP(rpc.JSON))},
		{"HTTP in CBOR", counted(overHTTP(rpc.CBOR))},
		{"stdio", counted(stream)},
		{"libp2p in JSON", counted(host.Caller(r.id, func() []string { return r.peers }, rpc.JSON))},
		{"libp2p in CBOR", counted(host.Caller(r.id, func() []string { return r.peers }, rpc.CBOR))},
	} {
		t.Run(carrier.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			ended, told := make(chan error, 1), &latest{waiting: -1}
			go func() {
				ended <- client.New(carrier.requests, "e2e", "1").Watch(ctx, agents.Principal{}, agents.WatchRequest{}, told.take)
			}()
			told.wait(t, "the relay is off", func(l *latest) bool { return l.relay.Value == device.Bool(false) && l.waiting == 0 })
			move := func(r agents.MoveRequest) {
				t.Helper()
				harness.WaitFor(t, 20*time.Second, "the relay moves", func() bool { _, err := local.Move(t.Context(), agents.Principal{}, r); return err == nil })
			}
			move(agents.MoveRequest{Output: "box/relay", Value: device.Bool(true), For: new(60.0)})
			told.wait(t, "the relay is held", func(l *latest) bool {
				d := l.relay.Detail
				return l.relay.Value == device.Bool(true) && d != nil && d.Holder == "local" && d.Left > 50
			})
			move(agents.MoveRequest{Output: "box/relay", Value: device.Bool(true), For: new(120.0)})
			told.wait(t, "the lease is renewed", func(l *latest) bool { return l.relay.Detail.Left > 110 })
			move(agents.MoveRequest{Output: "box/relay"})
			told.wait(t, "the relay is released", func(l *latest) bool {
				return l.relay.Value == device.Bool(false) && l.relay.Detail.Holder == ""
			})
			// The site's token asks for what an owner approves: an owner is told, and the token.
			if _, err := r.Client(t, false).Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "gate/relay", Value: device.Bool(true), For: new(10.0 + float64(i))}); err == nil {
				t.Error("the gate needs no approval")
			}
			told.wait(t, "a call waits", func(l *latest) bool { return l.waiting == 1 })
			all, err := ownerclient.Call(t.Context(), local.Owner, acts.RequestsAct, acts.None{})
			if err != nil || len(all.Requests) != 1 {
				t.Fatal(all, err)
			}
			if _, err := ownerclient.Call(t.Context(), local.Owner, acts.DenyAct, acts.Name{Name: all.Requests[0].Handle}); err != nil {
				t.Fatal(err)
			}
			told.wait(t, "the call was answered", func(l *latest) bool { return l.waiting == 0 })
			if _, err := local.Stop(t.Context(), agents.Principal{}, agents.SiteRequest{}); err != nil {
				t.Fatal(err)
			}
			told.wait(t, "everything is stopped", func(l *latest) bool { return l.stopped })
			if _, err := ownerclient.Call(t.Context(), local.Owner, acts.ResetAct, acts.None{}); err != nil {
				t.Fatal(err)
			}
			told.wait(t, "the stop is reset", func(l *latest) bool { return !l.stopped })
			carrier.only(t)
			cancel()
			if err := <-ended; err != context.Canceled {
				t.Error(err)
			}
		})
	}
}

// TestReadWatch: agentsite read --watch asks for nothing but the subscription.
func TestReadWatch(t *testing.T) {
	r := startOwned(t, "  box: { driver: sim, model: relay, min_off: 0 }\n")
	to, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	asked := counted(nil)
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.count(q.Header.Get("Mcp-Method"))
		// The whole body is read before it is forwarded. The proxy's server closes a body when the
		// answer begins, which may be before its client has seen the body's end, and then ends the
		// answer.
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, q)
	}))
	defer proxy.Close()
	read := exec.CommandContext(t.Context(), harness.Program, "read", "--watch", "--url", proxy.URL, "--token-file", state.Folder(r.Folder).Path(state.TokenFile))
	read.Stderr = os.Stderr
	out, err := read.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	line := func(want string) {
		t.Helper()
		select {
		case got := <-lines:
			if !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("20 s without %q", want)
		}
	}
	line("box/relay  off")
	harness.WaitFor(t, 20*time.Second, "the relay switches", func() bool { _, err := r.CLI(t, "set", "box/relay", "on", "--for", "1s"); return err == nil })
	line("box/relay  on")
	line("box/relay  off")
	asked.only(t)
	read.Process.Signal(os.Interrupt)
	if err := read.Wait(); err != nil {
		t.Error(err)
	}
}
