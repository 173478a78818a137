//go:build e2e

package internet

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/cmd/internal/internet/memnet"
	"agentsite/discovery"
	"agentsite/discovery/announce"
	"agentsite/discovery/card"
	"agentsite/discovery/dht"
	"agentsite/discovery/gossip"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"
)

const (
	packetLoss    = 0.01
	realmSize     = 20 // sites
	relaysOfSite  = 3
	sitesPerRelay = 50 // of the whole network; each has a place at three relays
	openSites     = 10 // one of so many is public, with server: on

	arrivals    = 10 * time.Minute // within which all sites start
	settling    = 5 * time.Minute
	wanted      = "switch"
	leaving     = 0.3
	roundPause  = 15 * time.Second
	maxRounds   = 60
	convergence = 0.99
)

// world is the sites and relays of many realms, in memory and in virtual time, each as the program makes it.
type world struct {
	t      *testing.T
	net    *memnet.Network
	ctx    context.Context
	end    context.CancelFunc
	ending sync.WaitGroup
	relays []*simRelay
	sites  []*simSite
	realms []discovery.Realm
	hosts  int
	gossip bool
	public bool // each tenth site is
}

type simRelay struct {
	*memnet.Host
	at    peer.AddrInfo
	table *dht.DHT
	leave func()
	gone  bool
}

type simSite struct {
	*announce.Announcer
	*memnet.Host
	network *Network
	realm   int
	open    bool
	can     []string
	leave   func()
}

func (w *world) host(key identity.Key, relays ...peer.AddrInfo) *memnet.Host {
	private, err := crypto.UnmarshalEd25519PrivateKey(key.Private())
	if err != nil {
		w.t.Fatal(err)
	}
	w.hosts++ // each in a network of its own
	at := fmt.Sprintf("/ip4/20.%d.%d.1/udp/8475/quic-v1", w.hosts>>8&255, w.hosts&255)
	h, err := w.net.Host(private, multiaddr.StringCast(at), relays...)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// addRelay runs the parts that Relay runs, without the reservations.
func (w *world) addRelay() {
	h := w.host(identity.New())
	var others []peer.AddrInfo
	for _, r := range w.relays[max(0, len(w.relays)-2):] {
		others = append(others, r.at)
	}
	table, err := dht.New(dht.Options{Host: h, Server: true, Bootstrap: others})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if !w.gossip {
			return
		}
		if err := gossip.Forward(ctx, h, gossip.Limits{}); err != nil {
			w.t.Error(err)
		}
	})
	running.Go(func() { keepConnected(ctx, h, others) })
	r := &simRelay{Host: h, at: peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()}, table: table}
	r.leave = sync.OnceFunc(func() {
		r.gone = true
		h.Vanish()
		cancel()
		running.Wait()
		table.Close()
		h.Close()
	})
	w.relays = append(w.relays, r)
}

func (w *world) relaysOf(realm int) (some []peer.AddrInfo) {
	for i := range relaysOfSite {
		some = append(some, w.relays[(realm+i)%len(w.relays)].at)
	}
	return some
}

var points = [][]announce.Point{
	{{Kind: "measurement", Name: "temperature"}},
	{{Kind: "measurement", Name: "temperature"}, {Kind: "switch", Name: "relay"}},
	{{Kind: "switch", Name: "relay"}},
	{{Kind: "measurement", Name: "temperature"}, {Kind: "image", Name: "picture"}},
	{{Kind: "measurement", Name: "temperature"}},
}

// addSite starts a site of a realm.
func (w *world) addSite(n, realm int) *simSite {
	key := identity.New()
	s := &simSite{realm: realm, open: w.public && n%openSites == openSites-1, Announcer: announce.New(announce.Options{
		Key: key, Name: fmt.Sprint("site-", n), URL: "https://192.168.1.7:8473/mcp", Claimed: func() bool { return true },
		Now:      func() (time.Time, bool) { return time.Now(), true },
		Sequence: discovery.NewSequence(0, func(uint64) error { return nil }),
	})}
	s.SetOffer(points[n%len(points)])
	s.can = s.Card().Capabilities
	relays := w.relaysOf(realm)
	o := Options{noGossip: !w.gossip, Relays: relays, Server: s.open, Site: &Site{
		Realm: Realm{Realm: w.realms[realm]}, Card: s.Card, Newer: s.Newer, Files: func(card.FileID) []byte { return nil },
	}}
	if s.open {
		s.Host = w.host(key)
	} else {
		s.Host = w.host(key, relays...)
		o.P2P.Relays = relays
	}
	in, err := join(s.Host, o)
	if err != nil {
		w.t.Fatal(err)
	}
	s.network = in
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { in.Run(ctx) })
	running.Go(func() { s.Announcer.Run(ctx, nil, in) })
	s.leave = sync.OnceFunc(func() {
		s.Host.Vanish()
		cancel()
		running.Wait()
		in.Close()
	})
	return s
}

// populate starts relays, and then sites in random order.
func (w *world) populate(sites, relays, realms int) {
	w.ending.Go(func() { w.net.Run(w.ctx) })
	for range relays {
		w.addRelay()
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	for _, n := range rand.Perm(sites) {
		w.sites = append(w.sites, w.addSite(n, n%realms))
		time.Sleep(arrivals / time.Duration(sites))
	}
}

// close ends all at once.
func (w *world) close() {
	for _, s := range w.sites {
		s.Host.Vanish()
	}
	for _, r := range w.relays {
		r.Host.Vanish()
	}
	var leaving sync.WaitGroup
	for _, s := range w.sites {
		leaving.Go(s.leave)
	}
	for _, r := range w.relays {
		leaving.Go(r.leave)
	}
	leaving.Wait()
	w.end()
	w.ending.Wait()
}

// reachable reports whether a realm has a relay left.
func (w *world) reachable(realm int) bool {
	return slices.ContainsFunc(w.relaysOf(realm), func(r peer.AddrInfo) bool {
		return slices.ContainsFunc(w.relays, func(o *simRelay) bool { return o.at.ID == r.ID && !o.gone })
	})
}

// looked is the result of one lookup by a client that knows nothing but the realm and its relays.
type looked struct {
	requests int
	took     time.Duration
	whole    bool // it found all live sites and nobody else
	found    float64
}

// look has clients look for a capability in random realms that have a relay, each from a host of its own.
func (w *world) look(times int) (all []looked) {
	live := make([]map[identity.ID]bool, len(w.realms))
	for i := range live {
		live[i] = make(map[identity.ID]bool)
	}
	for _, s := range w.sites {
		if slices.Contains(s.can, wanted) {
			live[s.realm][s.Key.ID()] = true
		}
	}
	var mu sync.Mutex
	var looking sync.WaitGroup
	for range times {
		realm := rand.N(len(w.realms))
		for !w.reachable(realm) {
			realm = rand.N(len(w.realms))
		}
		relays := w.relaysOf(realm)
		h := w.host(identity.New(), relays...)
		start := rand.N(roundPause / 2)
		looking.Go(func() {
			time.Sleep(start)
			in, err := join(h, Options{Relays: relays, Realms: []Realm{{Realm: w.realms[realm]}}})
			if err != nil {
				w.t.Error(err)
				return
			}
			defer in.Close()
			begun := time.Now()
			got, wrong := 0, false
			_ = in.Find(w.ctx, wanted, func(r *discovery.Signed) { // what it finds counts
				if live[realm][r.Site] {
					got++
				} else {
					wrong = true
				}
			})
			if wrong {
				w.t.Error("a site is found that is not there or cannot do it")
			}
			l := looked{int(in.tables[0].Requests()), time.Since(begun), got == len(live[realm]), 1}
			if n := len(live[realm]); n > 0 {
				l.found = float64(got) / float64(n)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, l)
		})
	}
	looking.Wait()
	return all
}

func wholeShare(all []looked) float64 {
	n := 0
	for _, l := range all {
		if l.whole {
			n++
		}
	}
	return float64(n) / float64(len(all))
}

// quantile returns a quantile of the values that of returns.
func quantile[T any, V cmp.Ordered](all []T, q float64, of func(T) V) (v V) {
	var values []V
	for _, a := range all {
		values = append(values, of(a))
	}
	if len(values) == 0 {
		return v
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

func requestsOf(l looked) int       { return l.requests }
func timeOf(l looked) time.Duration { return l.took.Round(10 * time.Millisecond) }

// subject is the purpose of a protocol.
func subject(id protocol.ID) string {
	switch text := string(id); {
	case strings.Contains(text, "kad"):
		return "table"
	case id == gossip.Protocol:
		return "gossip"
	default:
		return "cards"
	}
}

// usage adds up what hosts have used.
func usage(hosts []*memnet.Host) (u memnet.Usage) {
	u.Traffic = make(map[protocol.ID]memnet.Traffic)
	for _, h := range hosts {
		one := h.Usage()
		u.Dialled += one.Dialled
		u.Accepted += one.Accepted
		u.Circuits += one.Circuits
		u.Relayed += one.Relayed
		u.Connections += one.Connections
		for id, t := range one.Traffic {
			all := u.Traffic[protocol.ID(subject(id))]
			u.Traffic[protocol.ID(subject(id))] = memnet.Traffic{
				Messages: all.Messages + t.Messages, Sent: all.Sent + t.Sent, Received: all.Received + t.Received,
			}
		}
	}
	return u
}

// perHost returns the number of a host's open connections.
func perHost(hosts []*memnet.Host) float64 {
	return float64(usage(hosts).Connections) / float64(max(1, len(hosts)))
}

// rate describes what was used between two times, for each host and a day.
func rate(before, after memnet.Usage, hosts int, over time.Duration) string {
	each := func(n int64) float64 {
		return float64(n) / float64(max(1, hosts)) * float64(24*time.Hour) / float64(over)
	}
	var b strings.Builder
	for _, name := range []protocol.ID{"table", "gossip", "cards"} {
		was, now := before.Traffic[name], after.Traffic[name]
		fmt.Fprintf(&b, "%s %.0f kB out %.0f kB in %.0f messages; ", name,
			each(now.Sent-was.Sent)/1000, each(now.Received-was.Received)/1000, each(now.Messages-was.Messages))
	}
	fmt.Fprintf(&b, "%.0f connections opened, %.0f accepted", each(after.Dialled-before.Dialled),
		each(after.Accepted-before.Accepted))
	if after.Circuits > 0 {
		fmt.Fprintf(&b, "; %.0f circuits of %.0f kB relayed",
			each(after.Circuits-before.Circuits), each(after.Relayed-before.Relayed)/1000)
	}
	return b.String()
}

func (w *world) group(of func(*simSite) bool) (some []*memnet.Host) {
	for _, s := range w.sites {
		if of(s) {
			some = append(some, s.Host)
		}
	}
	return some
}
