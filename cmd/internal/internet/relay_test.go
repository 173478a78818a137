package internet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/discovery/gossip"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"
)

// TestAllowReachesGossip: a relay for few passes on nothing of others.
func TestAllowReachesGossip(t *testing.T) {
	allowed, strangers := []identity.Key{identity.New(), identity.New()}, []identity.Key{identity.New(), identity.New()}
	file := filepath.Join(t.TempDir(), "allow")
	if err := os.WriteFile(file, []byte(allowed[0].ID().String()+"\n"+allowed[1].ID().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan []string, 1), make(chan error, 1)
	go func() {
		ended <- Relay(ctx, RelayOptions{Folder: state.Folder(t.TempDir()), Listen: "127.0.0.1:0", Allow: file, Ready: func(at []string) { ready <- at }})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var relays []string
	select {
	case relays = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	at, err := p2p.ParsePeers(relays[:1])
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	// meet has one of a realm announced and the other look.
	meet := func(keys []identity.Key) (found chan struct{}) {
		realm, err := discovery.NewRealm("home")
		if err != nil {
			t.Fatal(err)
		}
		found = make(chan struct{}, 1000)
		record := discoverytest.Record(keys[0], 1)
		for i, k := range keys {
			h, err := p2p.New(p2p.Options{Key: k, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { h.Close() })
			m, err := gossip.New(gossip.Options{Host: h, Realm: realm, Ask: func(_ context.Context, of identity.ID, _ uint64) (discovery.Sighting, error) {
				if of != record.Site {
					return discovery.Sighting{}, errors.New("it is not there")
				}
				return discovery.Sighting{Site: of, Record: record.Bytes()}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.Close() })
			if err := h.Connect(ctx, at[0]); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if i == 0 {
					_ = m.Announce(ctx, record)
					return
				}
				_ = m.Find(ctx, func(discovery.Sighting) error { found <- struct{}{}; return nil })
			})
		}
		return found
	}
	others := meet(strangers)
	select {
	case <-meet(allowed):
	case <-time.After(30 * time.Second):
		t.Fatal("those that are allowed do not find each other")
	}
	if len(others) > 0 {
		t.Error("announcements of realms that are not allowed are forwarded")
	}
}
