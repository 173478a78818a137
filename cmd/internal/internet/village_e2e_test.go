//go:build e2e

package internet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/p2p"

	"golang.org/x/sync/errgroup"
)

// village is relays and sites of one realm in this process, each as the program makes it.
type village struct {
	t      *testing.T
	realm  discovery.Realm
	relays []string
	ending []context.CancelFunc // of the relays
	sites  []*villager
}

// villager is one site: its part in the global network, and how it is announced there.
type villager struct {
	*announce.Announcer
	network *Network
	can     []string // its capabilities
	leave   func()
	began   time.Time
}

func newVillage(t *testing.T, relays int) *village {
	t.Helper()
	realm, err := discovery.NewRealm("village")
	if err != nil {
		t.Fatal(err)
	}
	v := &village{t: t, realm: realm}
	for range relays {
		ctx, cancel := context.WithCancel(context.Background())
		ready, ended := make(chan []string, 1), make(chan error, 1)
		o := RelayOptions{
			Folder: state.Folder(t.TempDir()), Listen: "127.0.0.1:0", Version: "e2e", Ready: func(at []string) { ready <- at },
			Others: slices.Clone(v.relays[max(0, len(v.relays)-2):]),
		}
		go func() { ended <- Relay(ctx, o) }()
		stop := sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		select {
		case at := <-ready:
			i := slices.IndexFunc(at, func(a string) bool { return overQUIC(a) })
			v.relays = append(v.relays, at[i])
		case err := <-ended:
			t.Fatal(err)
		}
		v.ending = append(v.ending, stop)
		t.Cleanup(stop)
	}
	return v
}

func overQUIC(address string) bool { return strings.Contains(address, "/quic-v1/") }

// settle adds a site of three of the relays, which offers these points.
func (v *village) settle(points ...announce.Point) *villager {
	v.t.Helper()
	n := len(v.sites)
	key, folder := identity.New(), state.Folder(v.t.TempDir())
	cfg := config.Internet{Listen: "127.0.0.1:0", Realm: v.realm.String(), PortMap: true}
	for i := range min(3, len(v.relays)) {
		cfg.Relays = append(cfg.Relays, v.relays[(n+i)%len(v.relays)])
	}
	s := &villager{began: time.Now(), Announcer: announce.New(announce.Options{
		Key: key, Name: fmt.Sprint("site-", n), Claimed: func() bool { return true },
		Now:      func() (time.Time, bool) { return time.Now(), true },
		Sequence: discovery.NewSequence(folder.Sequence(), folder.WriteSequence),
	})}
	s.SetOffer(points)
	s.can = s.Card().Capabilities
	in, err := JoinSite(cfg, p2p.Options{Key: key, Agent: "agentsite/e2e"}, s.Card, s.Newer, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	s.network = in
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { in.Run(ctx) })
	running.Go(func() { s.Announcer.Run(ctx, nil, in) })
	s.leave = sync.OnceFunc(func() {
		in.Host.Close() // as a power cut does: it says nothing
		cancel()
		running.Wait()
		in.Close()
	})
	v.t.Cleanup(s.leave)
	v.sites = append(v.sites, s)
	return s
}

// able are the live sites with a capability.
func (v *village) able(capability string) map[string]bool {
	all := make(map[string]bool)
	for _, s := range v.sites {
		if slices.Contains(s.can, capability) {
			all[s.Key.ID().String()] = true
		}
	}
	return all
}

// look has all sites look for a capability, a few at a time. It returns how many lookups
// found each of those that there are and nobody else, and how long they took.
func (v *village) look(capability string) (whole int, took []time.Duration) {
	v.t.Helper()
	want := v.able(capability)
	var mu sync.Mutex
	var all errgroup.Group
	all.SetLimit(4)
	for _, s := range v.sites {
		all.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			begun := time.Now()
			got := make(map[string]bool)
			err := s.network.Find(ctx, capability, func(r *discovery.Signed) { got[r.Site.String()] = true })
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(begun))
			delete(got, s.Key.ID().String()) // of itself a site need not be told
			others := maps.Clone(want)
			delete(others, s.Key.ID().String())
			if err == nil && maps.Equal(got, others) {
				whole++
			} else if err != nil {
				v.t.Logf("%s from %s ended: %v", capability, s.Name, err)
			}
			for id := range got {
				if !others[id] {
					v.t.Errorf("%s: %s was found that is not there or cannot do it", capability, id)
				}
			}
			return nil
		})
	}
	all.Wait()
	slices.Sort(took)
	return whole, took
}

// know waits until a site knows all others that there are, and returns how many of these
// it does, fewer where it takes too long.
func (v *village) know(s *villager, within time.Duration) int {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	others := make(map[identity.ID]bool)
	for _, o := range v.sites {
		others[o.Key.ID()] = o != s
	}
	known := make(map[identity.ID]bool)
	s.network.directory.Watch(ctx, func(c discovery.Change, o discovery.Site) {
		if delete(known, o.Site); c != discovery.Gone && others[o.Site] {
			known[o.Site] = true
		}
		if len(known) == len(v.sites)-1 {
			cancel()
		}
	})
	return len(known)
}

// settled waits until all sites know each other, or for a while, because this is much work for one
// machine. Lookups also find the other sites.
func (v *village) settled() {
	until := time.Now().Add(20 * time.Second)
	for _, s := range v.sites {
		v.know(s, time.Until(until))
	}
}

// lookups has every site look for every capability, some at a time, up to a number of times until
// all find all.
func (v *village) lookups(when string, times int) {
	v.t.Helper()
	for _, capability := range capabilities {
		whole := 0
		for range times {
			var took []time.Duration
			whole, took = v.look(capability)
			v.t.Logf("%s, %s: %d of %d lookups found all %d; median %v, longest %v",
				when, capability, whole, len(v.sites), len(v.able(capability)), took[len(took)/2], took[len(took)-1])
			if whole == len(v.sites) {
				break
			}
		}
		if whole != len(v.sites) {
			v.t.Errorf("%s, %s: not every lookup found all", when, capability)
		}
	}
}

var capabilities = []string{"measurement/temperature", "switch", "camera"}

// TestVillage: the nodes of one realm, ten relays that keep the table and thirty sites, ninety
// with SOAK=1, with the product's defaults, gossip too. Every lookup from every site finds every
// live provider. Then a new site learns of all. After a third of all is gone at once, lookups end,
// show no site that is gone, and soon find all remaining ones.
func TestVillage(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/shm") // a hundred that write at once are one disk's matter, not ours
	// The memory limit of one program is not for a hundred: they would only collect garbage.
	t.Setenv("GOMEMLIMIT", "off")
	t.Setenv("GOGC", "400")
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	begun := time.Now()
	v := newVillage(t, 10)
	temperature := announce.Point{Kind: "measurement", Name: "temperature"}
	relay, camera := announce.Point{Kind: "switch", Name: "relay"}, announce.Point{Kind: "image", Name: "picture"}
	kinds := [][]announce.Point{{temperature}, {temperature, relay}, {relay}, {temperature, camera}, {temperature}}
	sites := 29
	if os.Getenv("SOAK") != "" {
		sites = 89
	}
	for i := range sites {
		v.settle(kinds[i%len(kinds)]...)
		if i%10 == 8 { // two processors are all that these have
			v.settled()
		}
	}
	v.awaitFound()
	t.Logf("%d sites have come after %v", len(v.sites), time.Since(begun).Round(10*time.Millisecond))

	v.lookups("all there", 1)

	late := v.settle(temperature)
	n := v.know(late, time.Minute)
	took := time.Since(late.began)
	t.Logf("the last site knew %d others after %v (at most 10 s)", n, took.Round(10*time.Millisecond))
	if n != len(v.sites)-1 {
		t.Errorf("the last site knows %d of %d others after %v", n, len(v.sites)-1, took)
	}

	v.awaitFound() // who came last has its place at a relay, and has told the servers

	var left []*villager
	var leaving sync.WaitGroup
	for i, s := range v.sites {
		if i%3 == 0 {
			leaving.Go(s.leave)
		} else {
			left = append(left, s)
		}
	}
	for _, end := range v.ending[:3] {
		leaving.Go(end)
	}
	leaving.Wait()
	v.sites = left
	v.lookups("a third gone", 4) // all who are left have new addresses, and two processors
	t.Logf("after %v", time.Since(begun).Round(10*time.Millisecond))
}

// awaitFound waits until some who know each of the relays find all: each site has told the
// servers then, which nobody else hears of.
func (v *village) awaitFound() {
	v.t.Helper()
	begun := time.Now()
	for _, s := range v.sites[:len(v.relays)] {
		for _, capability := range capabilities {
			for want := len(v.able(capability)); ; time.Sleep(time.Second) { // each look asks all of them
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				got := make(map[string]bool)
				err := s.network.Find(ctx, capability, func(r *discovery.Signed) { got[r.Site.String()] = true })
				cancel()
				if len(got) == want {
					break
				}
				if time.Since(begun) > 2*time.Minute {
					v.t.Fatalf("%d of %d with %s are found: %v", len(got), want, capability, err)
				}
			}
		}
	}
}
