//go:build e2e

package access

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// overHTTP2 returns a client that has a TLS configuration, speaks that protocol, and counts the
// connections that it dials.
func overHTTP2(t *testing.T, cfg *tls.Config, protocol string) (c *http.Client, dialled *atomic.Int32) {
	dialled = new(atomic.Int32)
	cfg = cfg.Clone()
	cfg.NextProtos = []string{protocol}
	transport := &http.Transport{
		TLSClientConfig: cfg, ForceAttemptHTTP2: protocol == "h2",
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, dialled
}

// TestHTTP2: an owner's client has a hundred streams of values on one connection, and each is told a
// move. The holder of a token gets as many by one connection as by many.
func TestHTTP2(t *testing.T) {
	const streams = 100
	r := startOwned(t, "  box: { driver: sim, model: relay, min_off: 0 }\n")
	at := r.HTTPS(t)
	local, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	owners, err := web.ClientTLS(r.owner, r.id)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := r.AddToken(t, "kitchen", "read *")
	withToken := owners.Clone()
	withToken.Certificates = nil

	watch := func(h *http.Client, token string, n int) (all []*latest, refused *atomic.Int32, end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended, refused := make(chan error, n), new(atomic.Int32)
		for range n {
			l := &latest{waiting: -1}
			all = append(all, l)
			c := client.New(&web.Client{URL: at.URL + "/mcp", Token: token, Codec: rpc.JSON, HTTP: h}, "e2e", "1")
			go func() {
				err := c.Watch(ctx, agents.Principal{}, agents.WatchRequest{}, l.take)
				if device.AsFault(err).Kind == device.Busy {
					refused.Add(1)
				} else if ctx.Err() == nil {
					t.Error(err)
				}
				ended <- err
			}()
		}
		return all, refused, func() {
			cancel()
			for range n {
				<-ended
			}
		}
	}
	told := func(all []*latest, v bool) (n int) {
		for _, l := range all {
			l.mu.Lock()
			if l.relay.Value == device.Bool(v) {
				n++
			}
			l.mu.Unlock()
		}
		return n
	}

	h, dialled := overHTTP2(t, owners, "h2")
	first, err := h.Get(at.URL + "/healthz") // those that are sent before it knows HTTP/2 would dial each
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	all, refused, end := watch(h, "", streams)
	harness.WaitFor(t, time.Minute, "every stream begins", func() bool { return told(all, false) == streams || refused.Load() > 0 })
	if _, err := local.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "box/relay", Value: device.Bool(true), For: new(60.0)}); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, time.Minute, "every stream is told", func() bool { return told(all, true) == streams || refused.Load() > 0 })
	if n, m := dialled.Load(), refused.Load(); n != 1 || m != 0 {
		t.Errorf("%d connections, %d streams refused", n, m)
	}
	end()

	counts := make(map[string]int)
	for _, protocol := range []string{"h2", "http/1.1"} {
		h, _ := overHTTP2(t, withToken, protocol)
		all, refused, end := watch(h, token, streams)
		harness.WaitFor(t, time.Minute, "every stream begins or is refused", func() bool { return told(all, true)+int(refused.Load()) == streams })
		counts[protocol] = told(all, true)
		end()
		harness.WaitFor(t, time.Minute, "the places are free", func() bool {
			all, refused, end := watch(h, token, counts[protocol])
			defer end()
			harness.WaitFor(t, time.Minute, "each begins or is refused", func() bool { return told(all, true)+int(refused.Load()) == len(all) })
			return refused.Load() == 0
		})
	}
	if counts["h2"] != counts["http/1.1"] || counts["h2"] == 0 || counts["h2"] > 32 {
		t.Errorf("streams of one key: %v", counts)
	}
}
