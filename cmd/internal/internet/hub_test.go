package internet

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/internet/memnet"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/discovery/card"
	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/node/bundle"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"
)

// hubWorld is a network in memory with one server of the table.
type hubWorld struct {
	*testing.T
	net    *memnet.Network
	hosts  int
	server peer.AddrInfo
	realm  discovery.Realm
	ctx    context.Context
	run    sync.WaitGroup
}

// inHub runs a test in such a network, in virtual time.
func inHub(t *testing.T, realm discovery.Realm, test func(*hubWorld)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &hubWorld{T: t, net: memnet.New(0, gossip.Protocol), realm: realm, ctx: ctx}
		w.run.Go(func() { w.net.Run(ctx) })
		h := w.host(identity.New())
		table, err := dht.New(dht.Options{Host: h, Server: true})
		if err != nil {
			t.Fatal(err)
		}
		w.server = peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}
		test(w)
		cancel()
		w.run.Wait()
		table.Close()
		h.Close()
	})
}

func (w *hubWorld) host(key identity.Key) *memnet.Host {
	private, err := crypto.UnmarshalEd25519PrivateKey(key.Private())
	if err != nil {
		w.Fatal(err)
	}
	w.hosts++
	at := multiaddr.StringCast(fmt.Sprintf("/ip4/20.0.%d.1/udp/8475/quic-v1", w.hosts))
	h, err := w.net.Host(private, at)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// site starts a site that gives away what files returns, and announces words. serve, if there is one,
// answers requests for files in its place.
func (w *hubWorld) site(words []string, files func(card.FileID) []byte, serve network.StreamHandler) {
	key := identity.New()
	a := announce.New(announce.Options{
		Key: key, Name: fmt.Sprint("site-", w.hosts), Claimed: func() bool { return true },
		Now: func() (time.Time, bool) { return time.Now(), true }, Shared: func() []string { return words },
		Sequence: discovery.NewSequence(0, func(uint64) error { return nil }),
	})
	h := w.host(key)
	in, err := join(h, Options{noGossip: true, Relays: []peer.AddrInfo{w.server}, Site: &Site{
		Realm: Realm{Realm: w.realm}, Card: a.Card, Newer: a.Newer, Files: files,
	}})
	if err != nil {
		w.Fatal(err)
	}
	if serve != nil {
		h.SetStreamHandler(card.FileProtocol, serve)
	}
	w.run.Go(func() { in.Run(w.ctx) })
	w.run.Go(func() { a.Run(w.ctx, nil, in) })
	w.run.Go(func() { <-w.ctx.Done(); h.Vanish() })
	w.Cleanup(func() { in.Close() })
}

// search searches as somebody new in the realm, and returns name, version, author and site of what was
// found.
func (w *hubWorld) search(words ...string) (all []Offer, took time.Duration) {
	in, err := join(w.host(identity.New()), Options{Relays: []peer.AddrInfo{w.server}, Realms: []Realm{{Realm: w.realm}}})
	if err != nil {
		w.Fatal(err)
	}
	defer in.Close()
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := in.SearchHub(ctx, w.realm, words, matches(words), func(o Offer) { all = append(all, o) }); err != nil {
		w.Error(err)
	}
	return all, time.Since(start)
}

func matches(words []string) func(*bundle.Bundle) bool {
	return func(b *bundle.Bundle) bool { return b.Matches(words) }
}

// fileOf returns the bundle of a rule.
func fileOf(t *testing.T, author identity.Key, name string, version uint32, tags ...string) []byte {
	t.Helper()
	b, err := bundle.Seal(author, bundle.Content{
		Name: name, Kind: "rule", Definition: "when: need/t < 5 Cel\n", Created: 1_700_000_000, Version: version, Tags: tags,
		Needs: []bundle.Need{{Name: "t", Kind: device.KindMeasurement, Unit: "Cel"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// publishing returns what a site gives that publishes some files.
func publishing(t *testing.T, files ...[]byte) (words []string, read func(card.FileID) []byte) {
	t.Helper()
	shared := new(bundle.Shared)
	for _, f := range files {
		var err error
		if shared, err = shared.Publish(f, true); err != nil {
			t.Fatal(err)
		}
	}
	var ids []bundle.FileID
	for k, b := range shared.All() {
		ids = append(ids, bundle.IDOf(shared.Files[k]))
		words = append(words, bundle.HubWord)
		for _, w := range b.Words() {
			words = append(words, bundle.HubWord+"/"+w)
		}
	}
	slices.Sort(words)
	return slices.Compact(words), func(id card.FileID) []byte {
		if id == card.Catalog {
			return bundle.EncodeCatalog(ids)
		}
		if k := shared.Find(bundle.FileID(id)); k >= 0 {
			return shared.Files[k]
		}
		return nil
	}
}

// TestHub: bundles of two authors are found on three sites, by words and without, in the public realm
// and in one with a secret.
func TestHub(t *testing.T) {
	secret, err := discovery.NewRealm("garden")
	if err != nil {
		t.Fatal(err)
	}
	for _, realm := range []discovery.Realm{secret, discovery.PublicRealm()} {
		inHub(t, realm, func(w *hubWorld) {
			anna, ben := identity.New(), identity.New()
			frost, other := fileOf(w.T, anna, "frost", 2, "heating", "night"), fileOf(w.T, ben, "frost", 1, "heating")
			drip := fileOf(w.T, ben, "drip", 1, "irrigation")
			for _, files := range [][][]byte{{frost, drip}, {other}, {frost}} {
				words, read := publishing(w.T, files...)
				w.site(words, read, nil)
			}
			time.Sleep(2 * time.Minute) // until all are announced
			for words, want := range map[string]int{"frost": 3, "heating": 3, "drip": 1, "": 4, "rule": 4, "unknown": 0} {
				var asked []string
				if words != "" {
					asked = []string{words}
				}
				if all, _ := w.search(asked...); len(all) != want {
					w.Errorf("%q: %d bundles, not %d", words, len(all), want)
				}
			}
			all, _ := w.search("heating", "night")
			if len(all) != 2 || all[0].Author != anna.ID() || all[0].ID != all[1].ID || all[0].Site.Site == all[1].Site.Site {
				w.Errorf("%d bundles", len(all))
			}
		})
	}
}

// TestHubHostile: sites that send false files, far too much, ten thousand entries or nothing cost a
// search no more than their bounds, and hide nothing of an honest one.
func TestHubHostile(t *testing.T) {
	inHub(t, discovery.PublicRealm(), func(w *hubWorld) {
		frost := fileOf(w.T, identity.New(), "frost", 1)
		words, read := publishing(w.T, frost)
		changed := slices.Clone(frost)
		changed[len(changed)-1] ^= 1
		var many []bundle.FileID
		for i := range 10_000 {
			many = append(many, bundle.FileID{byte(i), byte(i >> 8), 1})
		}
		asked := 0
		for _, liar := range []func(card.FileID) []byte{
			func(id card.FileID) []byte { // of another file than it names
				if id == card.Catalog {
					return read(id)
				}
				return changed
			},
			func(id card.FileID) []byte { // signed by nobody
				if id == card.Catalog {
					return bundle.EncodeCatalog([]bundle.FileID{bundle.IDOf(changed)})
				}
				return changed
			},
			func(id card.FileID) []byte { return bundle.EncodeCatalog(many) }, // more than a file has
			func(id card.FileID) []byte {
				if id == card.Catalog {
					return bundle.EncodeCatalog(many[:2000])
				}
				asked++
				return frost
			},
			func(id card.FileID) []byte { return []byte("no list") },
		} {
			w.site(words, liar, nil)
		}
		w.site(words, read, func(s network.Stream) { <-w.ctx.Done(); s.Reset() })
		w.site(words, read, func(s network.Stream) {
			for w.ctx.Err() == nil {
				if _, err := s.Write(make([]byte, 1<<16)); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		w.site(words, read, func(s network.Stream) { io.Copy(io.Discard, s); s.Close() })
		w.site(words, read, nil)
		time.Sleep(2 * time.Minute)
		all, took := w.search("frost")
		if len(all) == 0 || slices.ContainsFunc(all, func(o Offer) bool { return o.ID != bundle.IDOf(frost) }) {
			w.Errorf("%d bundles", len(all))
		}
		if asked > 16 {
			w.Errorf("one site was asked for %d files", asked)
		}
		if took > 40*time.Second {
			w.Errorf("it took %v", took)
		}
	})
}
