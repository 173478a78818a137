package peer

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/p2p"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
)

// TestFreshWays: repeated lookups of a site leave no streams open: the site has 32 for each caller.
func TestFreshWays(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	key := identity.New()
	site, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Account: func(id identity.ID) string { return id.String() }})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	dispatcher := rpc.NewDispatcher(map[string]rpc.Method{
		"echo": func(_ context.Context, c *rpc.Call) (any, error) { return c.Params, nil },
	})
	var open, most atomic.Int32
	site.SetStreamHandler("/agentsite/mcp/1/cbor", func(s network.Stream) {
		defer s.Close()
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		(&rpc.Stream{Dispatcher: dispatcher, Terms: rpc.Terms{Codec: rpc.CBOR}}).Serve(ctx, s)
	})

	out := &lazyNetwork{key: identity.New(), version: "test"}
	defer out.Close()
	where := func() []string { return []string{site.Addrs()[0].String()} }
	away := func(context.Context) (net.Conn, error) { return nil, errors.New("it is on no network of ours") }
	w := newRouter(key.ID(), where, rpc.JSON, away, out)
	for i := range uint64(100) {
		w.invalidateRoute()
		if _, err := w.Call(ctx, rpc.Request{ID: rpc.NumberID(i), Method: "echo"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := most.Load(); n > 16 {
		t.Errorf("%d streams were open at a time", n)
	}
}
