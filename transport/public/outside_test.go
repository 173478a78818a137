package public

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/web/outbound"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// looks has the relay connect to a name for the site, which says a text to whoever answers under another name.
func (w *world) looks(name, asks string, text []byte) (got []byte, err error) {
	w.t.Helper()
	for w.names.looks.held.Held(asker{w.site.ID()}) > 0 { // the one before
		runtime.Gosched()
	}
	raw, err := DialBy(w.t.Context(), w.site, w.relay.ID(), name)
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(20 * time.Second))
	c := tls.Client(raw, &tls.Config{ServerName: asks, InsecureSkipVerify: true})
	if err := c.HandshakeContext(w.t.Context()); err != nil {
		return nil, err
	}
	go func() { _, _ = c.Write(text) }()
	got = make([]byte, len(text))
	n, err := io.ReadFull(c, got)
	return got[:n], err
}

func stepOf(err error) string {
	if of := (*StepError)(nil); errors.As(err, &of) {
		return of.Step
	}
	return ""
}

// TestOutside: a relay connects to the public name of the site that asks, so that the site does TLS with itself, and to
// nothing else, nor for anything but TLS with that name, few bytes and a few times a minute.
func TestOutside(t *testing.T) {
	for _, by := range []string{"/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"} {
		t.Run(by[15:18], func(t *testing.T) {
			w := newWorld(t, by, "")
			name := w.name()
			elsewhere := []netip.Addr{netip.MustParseAddr("5.6.7.8")}
			w.address.Store(&elsewhere)
			text := []byte("to itself")
			if got, err := w.looks(name, name, text); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%q, %v", got, err)
			}
			if at := w.dialed.Swap(nil); at == nil || *at != "5.6.7.8:443" {
				t.Error(at)
			}
			if _, err := w.looks(name, "x."+zone, text); err == nil {
				t.Error("TLS with another name is passed on")
			}
			if got, err := w.looks(name, name, make([]byte, 4*outsideBytes)); err == nil || len(got) > outsideBytes {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err := w.looks("localhost", name, text); stepOf(err) != StepRefused {
				t.Error(err)
			}
			if _, err := w.looks(name, name, text); err != nil {
				t.Error(err)
			}
			if _, err := w.looks(name, name, text); stepOf(err) != StepRefused {
				t.Error("too often:", err)
			}
		})
	}
}

// TestOutsideOwners: whose a name is decides whether a relay connects for a site: by the label of the name's CNAME, or
// by its address.
func TestOutsideOwners(t *testing.T) {
	w := newWorld(t, "/ip4/127.0.0.1/tcp/0", "")
	name := w.name()
	elsewhere := []netip.Addr{netip.MustParseAddr("5.6.7.8")}
	other, _ := peer.Decode(identity.New().ID().PeerID())
	text := []byte("to itself")
	const own = "board.example.net"
	w.address.Store(&elsewhere)
	w.allowed.Store(false)
	if _, err := w.looks(name, name, text); stepOf(err) != StepRefused || w.dialed.Load() != nil {
		t.Error("a site that is not listed:", err)
	}
	w.allowed.Store(true)
	if _, err := w.looks(own, own, text); stepOf(err) != StepDNS {
		t.Error("no such name:", err)
	}
	for _, target := range []string{own, Label(other) + "." + zone} {
		w.cname.Store(&target)
		if _, err := w.looks(own, own, text); stepOf(err) != StepDNS || w.dialed.Load() != nil {
			t.Errorf("a CNAME of %s: %v", target, err)
		}
	}
	both := append(elsewhere, netip.MustParseAddr("127.0.0.1")) // the site's own, as the relay sees it
	w.address.Store(&both)
	if _, err := w.looks(own, name, text); err == nil {
		t.Error("by its address, with TLS for another name")
	}
	if at := cmp.Or(w.dialed.Load(), new(string)); *at != "127.0.0.1:443" {
		t.Errorf("by its address: %q", *at)
	}
}

// TestPublicAddresses: no name has a relay or an owner's computer connect to an address that is not public, but to
// those that the owner writes.
func TestPublicAddresses(t *testing.T) {
	if _, err := newOutside(nil).dial(t.Context(), "tcp", "127.0.0.1:443"); !errors.Is(err, outbound.ErrPrivate) {
		t.Error(err)
	}
	here := netip.MustParseAddr("127.0.0.1")
	if _, err := dialAny(t.Context(), outbound.Dialer().DialContext, []netip.Addr{here}); !errors.Is(err, outbound.ErrPrivate) || stepOf(err) != StepConnect {
		t.Error(err)
	}
	c, err := Dial(t.Context(), "board.example.org", here)
	if err == nil {
		c.Close()
	}
	if errors.Is(err, outbound.ErrPrivate) {
		t.Error("it was named:", err)
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("\x02abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := readText(bytes.NewReader(b))
		if err == nil && len(text) > 3*maxText {
			t.Errorf("%q", text)
		}
	})
}

// TestHostileLook: what a relay answers to the wish for a look, or that it does not, holds up nobody, and is bounded.
func TestHostileLook(t *testing.T) {
	w := newWorld(t, "/ip4/127.0.0.1/udp/0/quic-v1", "")
	name := w.name()
	for what, c := range map[string]struct {
		says []byte // nil for silence
		step string
	}{
		"silent":       {nil, StepRefused},
		"ended":        {[]byte{}, StepRefused},
		"half":         {[]byte("\x09rel"), StepRefused},
		"another step": {append(appendText(nil, "TLS\x1b[31m"), appendText(nil, string(make([]byte, 1000)))...), StepRefused},
		"DNS":          {append(appendText(nil, StepDNS), appendText(nil, "\xff")...), StepDNS},
	} {
		w.relay.SetStreamHandler(outsideProtocol, func(s network.Stream) {
			if c.says == nil {
				_, _ = io.Copy(io.Discard, s) // until it is reset
				return
			}
			_, _ = s.Write(c.says)
			s.Close()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if c.says == nil {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		begun := time.Now()
		conn, err := DialBy(ctx, w.site, w.relay.ID(), name)
		cancel()
		if conn != nil || stepOf(err) != c.step || len(err.Error()) > 2*maxText || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v after %v", what, err, time.Since(begun))
		}
	}
}
