package p2p

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents/principal"
	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/event"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far longer than anything takes here that works.
const patience = 30 * time.Second

// newHost is one on loopback that the test ends.
func newHost(t testing.TB, o Options, listen ...string) *Host {
	t.Helper()
	if o.Key.Private() == nil {
		o.Key = identity.New()
	}
	o.Listen = listen
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

const (
	overTCP  = "/ip4/127.0.0.1/tcp/0"
	overQUIC = "/ip4/127.0.0.1/udp/0/quic-v1"
)

func (h *Host) id(t testing.TB) identity.ID {
	t.Helper()
	id, err := idOf(h.ID())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// at are a host's addresses.
func (h *Host) at() (all []string) {
	for _, a := range h.Addrs() {
		all = append(all, a.String())
	}
	return all
}

// serve serves echo and wait at a host, until the test ends.
func serve(t testing.TB, h *Host, admit func(string) error) {
	t.Helper()
	serveMethods(t, h, admit, map[string]rpc.Method{
		"echo": func(_ context.Context, c *rpc.Call) (any, error) { return c.Params, nil },
		"who":  func(_ context.Context, c *rpc.Call) (any, error) { return c.Key, nil },
		"wait": func(ctx context.Context, c *rpc.Call) (any, error) {
			c.Notify("waiting", nil)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
}

func serveMethods(t testing.TB, h *Host, admit func(string) error, methods map[string]rpc.Method) {
	t.Helper()
	dispatcher := rpc.NewDispatcher(methods)
	if admit == nil {
		admit = func(string) error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		h.Serve(ctx, Handlers{
			Key: func(peer string) (principal.Principal, error) {
				return principal.Principal{ID: peer, Account: peer}, admit(peer)
			},
			Stream: func(ctx context.Context, rw io.ReadWriteCloser, from func() rpc.Sender, terms rpc.Terms) error {
				return (&rpc.Stream{Dispatcher: dispatcher, Sender: from, Terms: terms}).Serve(ctx, rw)
			},
		})
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	Served(t, h)
}

// Served waits until a host serves.
func Served(t testing.TB, h *Host) {
	t.Helper()
	changes, err := h.EventBus().Subscribe(new(event.EvtLocalProtocolsUpdated))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	for id := range codecs {
		for !slices.Contains(h.Mux().Protocols(), id) {
			<-changes.Out()
		}
	}
}

func ask(id uint64, method string, params any) rpc.Request {
	return rpc.Request{ID: rpc.NumberID(id), Method: method, Params: params}
}

// text renders the result of a call.
func text(t testing.TB, res rpc.Raw, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := res.JSONText()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// both runs a test over each transport in each encoding.
func both(t *testing.T, test func(t *testing.T, listen string, codec rpc.Codec)) {
	for name, listen := range map[string]string{"tcp": overTCP, "quic": overQUIC} {
		for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
			t.Run(name+" "+codec.ContentType(), func(t *testing.T) {
				t.Parallel()
				test(t, listen, codec)
			})
		}
	}
}

func TestCalls(t *testing.T) {
	both(t, func(t *testing.T, listen string, codec rpc.Codec) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		site, other := newHost(t, Options{}, listen), newHost(t, Options{})
		serve(t, site, nil)
		c := other.Caller(site.id(t), site.at, codec)
		if p := c.Path(); p != "" {
			t.Errorf("there is a way before there is one: %s", p)
		}
		res, err := c.Call(ctx, ask(1, "who", nil), nil)
		if got := text(t, res, err); got != `"`+other.ID().String()+`"` {
			t.Errorf("the site takes its caller for %s", got)
		}
		var calls sync.WaitGroup
		for i := range uint64(rpc.MaxInFlight) { // one half is given up, the other answered
			calls.Go(func() {
				if i%2 == 0 {
					ctx, cancel := context.WithCancel(ctx)
					_, err := c.Call(ctx, ask(100+i, "wait", nil), func(string, rpc.Raw) { cancel() })
					if !errors.Is(err, context.Canceled) {
						t.Errorf("a call given up: %v", err)
					}
					return
				}
				long := strings.Repeat("x", int(i)*1000)
				res, err := c.Call(ctx, ask(100+i, "echo", map[string]any{"n": long}), nil)
				if b, _ := res.JSONText(); err != nil || string(b) != `{"n":"`+long+`"}` {
					t.Errorf("%.80s, %v", b, err)
				}
			})
		}
		calls.Wait()
		if p := c.Path(); p != Direct {
			t.Errorf("the path is %q", p)
		}
		if n := len(other.Network().ConnsToPeer(site.ID())[0].GetStreams()); n != 1 {
			t.Errorf("%d streams are open", n)
		}
		pong, err := other.Ping(ctx, site.id(t))
		if err != nil || pong.Path != Direct || pong.Address != site.at()[0] || pong.RTT <= 0 {
			t.Errorf("%+v, %v", pong, err)
		}
	})
}

// TestStreamsByAccount: the keys of one account have together as many streams as one may,
// but for a few that each has of its own, and take none from another.
func TestStreamsByAccount(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	owner := identity.New()
	accountOf := func(id identity.ID) string {
		if id == owner.ID() {
			return "owner"
		}
		return "eve"
	}
	site := newHost(t, Options{Account: accountOf}, overTCP)
	serving, end := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		site.Serve(serving, Handlers{
			Key: func(peer string) (principal.Principal, error) {
				id, err := identity.Parse(peer)
				return principal.Principal{ID: peer, Account: accountOf(id)}, err
			},
			Stream: func(ctx context.Context, rw io.ReadWriteCloser, _ func() rpc.Sender, _ rpc.Terms) error {
				io.WriteString(rw, "x")
				<-ctx.Done()
				return nil
			},
		})
	})
	t.Cleanup(func() { end(); served.Wait() })
	Served(t, site)
	opened := func(h *Host, n int) (got int) {
		for range n {
			s, err := open(ctx, h, site, rpc.JSON, "x")
			if err != nil {
				continue
			}
			if _, err := s.Read(make([]byte, 1)); err == nil {
				got++
			}
		}
		return got
	}
	all := 0
	for range 3 {
		all += opened(newHost(t, Options{}), maxAccountStreams/2)
	}
	if want := maxAccountStreams + minPeerStreams; all != want {
		t.Errorf("one account has %d streams, want %d", all, want)
	}
	if n := opened(newHost(t, Options{Key: owner}), 1); n != 1 {
		t.Error("another has none")
	}
}
