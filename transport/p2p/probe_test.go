package p2p

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
)

// twoRelays is a site with places at two relays, and its caller, which is connected through the first.
type twoRelays struct {
	site, other *Host
	caller      *Caller
	drops       *atomic.Bool // the first relay answers the caller nothing
	known       atomic.Int32 // how many relays the caller knows; 0 where it finds no way for as long as it looks

	echoes  atomic.Int32
	held    chan bool // gets a value for each call of hold
	release chan bool // ends calls of hold
}

func newTwoRelays(t *testing.T) *twoRelays {
	w := &twoRelays{drops: new(atomic.Bool), held: make(chan bool, 10), release: make(chan bool)}
	first, second := newHost(t, Options{Relay: &Relay{}}, overQUIC), newHost(t, Options{Relay: &Relay{}}, overQUIC)
	w.site, w.other = newHost(t, Options{}), newHost(t, Options{})
	hold := func(ctx context.Context, c *rpc.Call) (any, error) {
		c.Notify("holding", nil)
		w.held <- true
		select {
		case <-w.release:
		case <-ctx.Done():
		}
		return "held", ctx.Err()
	}
	serveMethods(t, w.site, nil, map[string]rpc.Method{
		"echo": func(_ context.Context, c *rpc.Call) (any, error) { w.echoes.Add(1); return c.Params, nil },
		"hold": hold,
	})
	over(t, first, w.site)
	through := over(t, second, w.site)
	at, _ := cable(t, first, w.drops)
	known := append([]string{at.String() + "/p2p/" + first.ID().String() + "/p2p-circuit"}, through...)
	w.known.Store(1)
	w.caller = w.other.CallerBy(w.site.id(t), func(ctx context.Context) error {
		if n := w.known.Load(); n > 0 || w.other.isConnected(w.site.ID()) {
			return w.other.Reach(ctx, w.site.id(t), known[:n])
		}
		<-ctx.Done()
		return ctx.Err()
	}, rpc.CBOR)
	w.echo(t, 1)
	return w
}

func (w *twoRelays) echo(t *testing.T, id uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r := ask(id, "echo", "x")
	r.Repeatable = true
	begun := time.Now()
	res, err := w.caller.Call(ctx, r, nil)
	if got := text(t, res, err); got != `"x"` {
		t.Error(got)
	}
	t.Logf("answered after %v", time.Since(begun))
}

// hold begins a call that the site holds, and returns its end.
func (w *twoRelays) hold(t *testing.T, r rpc.Request, note func(string, rpc.Raw)) <-chan error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() {
		_, err := w.caller.Call(ctx, r, note)
		ended <- err
	}()
	<-w.held
	return ended
}

// TestRelayHangs: a call over a relay that hangs is sent again over another relay where it is
// repeatable. Other calls, and subscriptions, end as broken, long before the caller gives up.
func TestRelayHangs(t *testing.T) {
	w := newTwoRelays(t)
	w.known.Store(2)
	once := w.hold(t, ask(2, "hold", nil), nil)
	watch := w.hold(t, ask(3, "hold", nil), func(string, rpc.Raw) {})
	twice := ask(4, "hold", nil)
	twice.Repeatable = true
	repeated := w.hold(t, twice, nil)
	w.drops.Store(true)
	w.echo(t, 5)
	w.echo(t, 6)
	for name, ended := range map[string]<-chan error{"a call": once, "a subscription": watch} {
		if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	<-w.held
	close(w.release)
	if err := <-repeated; err != nil {
		t.Errorf("a repeatable call ends with %v", err)
	}
	if n := w.echoes.Load(); n != 3 {
		t.Errorf("3 calls reached the site %d times", n)
	}
}

// TestSlowCall: a call that takes long is not repeated while the site answers, and where there is no
// other way it goes on once its relay does.
func TestSlowCall(t *testing.T) {
	w := newTwoRelays(t)
	w.known.Store(0)
	pinged := make(chan bool, 100)
	w.site.SetStreamHandler(ping.ID, func(s network.Stream) {
		pinged <- true
		defer s.Reset()
		io.Copy(s, s)
	})
	for name, drops := range map[string]bool{"slow": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			r := ask(7, "hold", nil)
			r.Repeatable = true
			ended := w.hold(t, r, nil)
			if drops {
				w.drops.Store(true)
				every, end := time.NewTicker(time.Millisecond), time.After(patience)
				defer every.Stop()
				for !slices.ContainsFunc(w.other.Network().ConnsToPeer(w.site.ID()), isDoubted) {
					select {
					case <-every.C:
					case <-end:
						t.Fatal("a connection that answers nothing is not doubted")
					}
				}
				w.drops.Store(false)
			}
			<-pinged
			w.release <- true
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if len(w.held) > 0 {
				t.Error("the call was made twice")
			}
			w.echo(t, 8)
			if n := len(w.other.Network().ConnsToPeer(w.site.ID())); n != 1 {
				t.Errorf("there are %d connections", n)
			}
		})
	}
}
