package memnet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

const echo protocol.ID = "/echo"

// newHost makes a host that sends back what it reads.
func newHost(t *testing.T, n *Network, number int, relays ...peer.AddrInfo) *Host {
	t.Helper()
	key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(fmt.Appendf(nil, "%032d", number)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := n.Host(key, ma.StringCast(fmt.Sprintf("/ip4/20.0.%d.1/udp/1/quic-v1", number)), relays...)
	if err != nil {
		t.Fatal(err)
	}
	h.SetStreamHandler(echo, func(s network.Stream) {
		_, _ = io.Copy(s, s)
		s.Close()
	})
	t.Cleanup(func() { h.Close() })
	return h
}

func infoOf(h *Host) peer.AddrInfo { return peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()} }

func ask(ctx context.Context, from *Host, to peer.ID) (string, error) {
	s, err := from.NewStream(ctx, to, echo)
	if err != nil {
		return "", err
	}
	defer s.Reset()
	if _, err := s.Write([]byte("hello")); err != nil {
		return "", err
	}
	_ = s.CloseWrite()
	b, err := io.ReadAll(s)
	return string(b), err
}

func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(0, "")
		a, b := newHost(t, n, 1), newHost(t, n, 2)
		begun, way := time.Now(), a.delay(b, nil)
		if err := a.Connect(t.Context(), infoOf(b)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 4*way {
			t.Errorf("connecting takes %v, on a way of %v", took, way)
		}
		begun = time.Now()
		if got, err := ask(t.Context(), a, b.ID()); got != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if took := time.Since(begun); took != 2*way {
			t.Errorf("an answer takes %v, on a way of %v", took, way)
		}
		want := Traffic{Messages: 1, Sent: 5 + negotiation + int64(len(echo)), Received: 5 + negotiation + int64(len(echo))}
		if got := a.Usage(); got.Traffic[echo] != want || got.Dialled != 1 || b.Usage().Accepted != 1 {
			t.Errorf("%+v", got)
		}
		if _, err := a.NewStream(t.Context(), b.ID(), "/other"); err == nil {
			t.Error("a protocol that is not there is spoken")
		}
	})
}

// TestBehindRouter: a host behind a router is reached through its relay only, by streams that allow that.
func TestBehindRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(0, "")
		relay, a := newHost(t, n, 1), newHost(t, n, 2)
		b := newHost(t, n, 3, infoOf(relay))
		if len(b.Addrs()) != 0 {
			t.Errorf("%v without a relay", b.Addrs())
		}
		if err := b.Connect(t.Context(), infoOf(relay)); err != nil {
			t.Fatal(err)
		}
		if err := a.Connect(t.Context(), peer.AddrInfo{ID: b.ID(), Addrs: []ma.Multiaddr{b.addr}}); err == nil {
			t.Error("the router lets a connection in")
		}
		if err := a.Connect(t.Context(), infoOf(b)); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t.Context(), a, b.ID()); !errors.Is(err, network.ErrLimitedConn) {
			t.Error(err)
		}
		if got, err := ask(network.WithAllowLimitedConn(t.Context(), "test"), a, b.ID()); got != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if u := relay.Usage(); u.Circuits != 1 || u.Relayed != 2*(5+negotiation+int64(len(echo))) {
			t.Errorf("%+v", u)
		}
	})
}

// TestVanish: a host without power is silent first, and then disconnected.
func TestVanish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(0, "")
		a, b := newHost(t, n, 1), newHost(t, n, 2)
		if err := a.Connect(t.Context(), infoOf(b)); err != nil {
			t.Fatal(err)
		}
		b.Vanish()
		s, err := a.NewStream(t.Context(), b.ID(), echo)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(maxSilence)
		if c := a.connectednessTo(b.ID()); c != network.NotConnected {
			t.Error(c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Connect(ctx, peer.AddrInfo{ID: b.ID()}); err == nil {
			t.Error("a host without power is reached")
		}
	})
}

// TestIdle: a connection ends without streams, and not while its dialler protects it.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(0.5, "")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.Run(ctx)
		a, b, c := newHost(t, n, 1), newHost(t, n, 2), newHost(t, n, 3)
		for _, h := range []*Host{b, c} {
			if err := a.Connect(ctx, infoOf(h)); err != nil {
				t.Fatal(err)
			}
			if got, err := ask(ctx, a, h.ID()); got != "hello" || err != nil { // also where packets are lost
				t.Errorf("%q, %v", got, err)
			}
		}
		a.ConnManager().Protect(c.ID(), "test")
		time.Sleep(idleGrace + 2*idleInterval)
		if a.connectednessTo(b.ID()) != network.NotConnected || a.connectednessTo(c.ID()) != network.Connected {
			t.Errorf("%+v", a.Usage())
		}
	})
}
