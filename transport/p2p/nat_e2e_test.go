//go:build e2e && linux

package p2p

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery/bed"
)

// leading is the way to a relay: its address by the one or the other.
func leading(way, ip, id string) string {
	if way == "quic" {
		return fmt.Sprintf("/ip4/%s/udp/4001/quic-v1/p2p/%s", ip, id)
	}
	return fmt.Sprintf("/ip4/%s/tcp/4001/p2p/%s", ip, id)
}

// TestPunched: two homes behind routers that keep ports, and two relays, so that both know
// an address at which nobody reaches them.
func TestPunched(t *testing.T) {
	for _, way := range []string{"quic", "tcp"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var placed, opened []time.Duration
			for range 3 {
				w := bed.NewWorld(t)
				home := func() string {
					h := w.Home(bed.Preserving)
					if way == "tcp" {
						h.NoUDP() // or it would be by QUIC, which is tried too
					}
					return h.Host()
				}
				var all []string
				for range 2 {
					on, ip := w.Public()
					all = append(all, leading(way, ip, start(t, on, given{Relay: true}).id))
				}
				at := all[0]
				begun := time.Now()
				site := start(t, home(), given{Relays: all})
				placed = append(placed, site.await(10*time.Second, "a place at the relay", placeAt(at[strings.LastIndex(at, "/")+1:])).At.Sub(begun))
				var caller *process
				var e told
				// Both ends have to dial at once, which a busy machine does not do: after three
				// attempts in vain, the library's most, another caller tries.
				for try := 1; e.Addr == ""; try++ {
					caller = start(t, home(), given{Relays: all})
					begun = time.Now() // and it knows nothing yet
					caller.must("connect", at+"/p2p-circuit/p2p/"+site.id)
					caller.until(30*time.Second, "a hole is punched, or three attempts fail", func(all []told) bool {
						failed := 0
						for _, one := range all {
							if caller.directTo(site)(one) {
								e = one
							}
							if one.What == "no hole" {
								failed++
							}
						}
						return e.Addr != "" || failed == 3
					})
					if e.Addr == "" && try == 3 {
						t.Fatalf("three callers punched no hole: %s", listed(caller.all()))
					}
				}
				opened = append(opened, e.At.Sub(begun))
				if !strings.Contains(e.Addr, way) {
					t.Errorf("a hole for %s over a relay by %s", e.Addr, way)
				}
				if a := caller.must("echo", site.id); relayed(a.Addr) {
					t.Errorf("400 KiB went by %s", a.Addr)
				}
			}
			t.Logf("a place at the relay after %v, a hole after %v (medians of %d; all: %v %v)", median(placed), median(opened), len(placed), placed, opened)
		})
	}
}

// reach calls a site ten times a second, until it answers, and returns how long that took.
func (p *process) reach(site *process, within time.Duration, at ...string) time.Duration {
	p.t.Helper()
	begun := time.Now()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for ; ; <-every.C {
		var why []string
		for _, a := range at {
			said := p.ask("connect", a+"/p2p/"+site.id)
			if said.Error == "" {
				return time.Since(begun)
			}
			why = append(why, said.Error)
		}
		if time.Since(begun) > within {
			p.t.Fatalf("not reached within %v: %q; the site told %s", within, why, listed(site.all()))
		}
	}
}

// TestRelayReturns: a relay ends in order, or not, and begins again.
func TestRelayReturns(t *testing.T) {
	for _, way := range []string{"quic", "tcp"} {
		for _, how := range []string{"stopped", "killed"} {
			t.Run(way+"/"+how, func(t *testing.T) {
				t.Parallel()
				var took []time.Duration
				for range 3 {
					w := bed.NewWorld(t)
					on, ip := w.Public()
					relay := start(t, on, given{Relay: true})
					at := leading(way, ip, relay.id)
					site := start(t, w.Home(bed.Symmetric).Host(), given{Relays: []string{at}})
					site.await(10*time.Second, "a place at the relay", placeAt(relay.id))
					caller := start(t, w.Home(bed.Symmetric).Host(), given{Relays: []string{at}})
					caller.must("connect", at+"/p2p-circuit/p2p/"+site.id)
					begun := time.Now()
					if how == "killed" {
						relay.kill()
					} else {
						relay.stop()
					}
					relay = start(t, on, relay.given)
					caller.must("close", site.id) // the call got no answer
					caller.must("close", relay.id)
					caller.reach(site, 40*time.Second, at+"/p2p-circuit")
					took = append(took, time.Since(begun))
				}
				t.Logf("reached again after %v (median of %d; all: %v)", median(took), len(took), took)
				if slices.Max(took) > 10*time.Second {
					t.Error("that is long")
				}
			})
		}
	}
}

// TestTwoRelays: one is killed, and the other goes on.
func TestTwoRelays(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	var at []string
	var relays []*process
	for range 2 {
		on, ip := w.Public()
		r := start(t, on, given{Relay: true})
		relays, at = append(relays, r), append(at, leading("quic", ip, r.id))
	}
	site := start(t, w.Home(bed.Symmetric).Host(), given{Relays: at})
	for _, r := range relays {
		site.await(10*time.Second, "a place", placeAt(r.id))
	}
	caller := start(t, w.Home(bed.Symmetric).Host(), given{Relays: at})
	caller.reach(site, 0, at[0]+"/p2p-circuit")
	begun := time.Now()
	relays[0].kill()
	caller.must("close", site.id)
	t.Logf("reached by the other after %v", caller.reach(site, 5*time.Second, at[1]+"/p2p-circuit"))
	e := site.awaitSince(begun, 30*time.Second, "the place that has gone is not told any more", noPlaceAt(relays[0].id))
	t.Logf("the killed relay's address is not told any more after %v", e.At.Sub(begun).Round(time.Millisecond))
	if !placeAt(relays[1].id)(e) {
		t.Errorf("nor is the other: %v", e.Addrs)
	}
}

// TestSymmetric: no hole can be punched, and calls go through the relay.
func TestSymmetric(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	on, ip := w.Public()
	relay := start(t, on, given{Relay: true})
	at := leading("quic", ip, relay.id)
	home, away := w.Home(bed.Symmetric), w.Home(bed.Symmetric)
	site := start(t, home.Host(), given{Relays: []string{at}})
	site.await(10*time.Second, "a place at the relay", placeAt(relay.id))
	caller := start(t, away.Host(), given{Relays: []string{at}})
	tried := func() (int, int) { return home.Sent(away.IP), away.Sent(home.IP) }
	tried()
	begun := time.Now()
	caller.must("connect", at+"/p2p-circuit/p2p/"+site.id)
	if a := caller.must("echo", site.id); !relayed(a.Addr) {
		t.Errorf("400 KiB went by %s", a.Addr)
	}
	site.until(60*time.Second, "it is given up", func(all []told) bool {
		tries := 0
		for _, e := range all {
			if e.What == "no hole" {
				tries++
			}
		}
		return tries == 3
	})
	out, in := tried()
	if out == 0 || in == 0 {
		t.Errorf("no hole was tried: %d and %d packets", out, in)
	}
	time.Sleep(20 * time.Second) // in which nothing may happen
	if o, i := tried(); o != out || i != in {
		t.Errorf("it is tried on and on: %d and %d packets, then %d and %d", out, in, o, i)
	}
	t.Logf("%d and %d packets for a hole, and none after %v", out, in, time.Since(begun).Round(time.Second))
	caller.must("echo", site.id)
	for _, c := range caller.must("conns", site.id).Conns {
		if !relayed(c.Addr) {
			t.Errorf("a hole after all: %v", c)
		}
	}
}

// TestNoUDP: an office lets no UDP out.
func TestNoUDP(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	on, ip := w.Public()
	relay := start(t, on, given{Relay: true})
	both := []string{leading("quic", ip, relay.id), leading("tcp", ip, relay.id)}
	office := w.Home(bed.Preserving)
	office.NoUDP()
	begun := time.Now()
	site := start(t, office.Host(), given{Relays: both})
	e := site.await(20*time.Second, "a place at the relay", placeAt(relay.id))
	t.Logf("a place at the relay after %v", e.At.Sub(begun).Round(time.Millisecond))
	caller := start(t, w.Home(bed.Preserving).Host(), given{Relays: both})
	begun = time.Now()
	caller.must("connect", both[0]+"/p2p-circuit/p2p/"+site.id)
	t.Logf("called through it after %v", time.Since(begun).Round(time.Millisecond))
	caller.must("echo", site.id)
}

// TestMoves: a home's address changes while it is called, and its router forgets what it
// let out.
func TestMoves(t *testing.T) {
	for what, happen := range map[string]func(*bed.Home){"moves": (*bed.Home).Move, "restarts": (*bed.Home).Restart} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := bed.NewWorld(t)
			on, ip := w.Public()
			relay := start(t, on, given{Relay: true})
			at := leading("quic", ip, relay.id)
			home := w.Home(bed.Preserving)
			site := start(t, home.Host(), given{Relays: []string{at}})
			site.await(10*time.Second, "a place at the relay", placeAt(relay.id))
			caller := start(t, w.Home(bed.Preserving).Host(), given{Relays: []string{at}})
			caller.must("connect", at+"/p2p-circuit/p2p/"+site.id)
			caller.await(time.Minute, "a hole is punched", caller.directTo(site))
			begun := time.Now()
			happen(home)
			for {
				if a := caller.ask("echo", site.id); a.Error == "" {
					break
				} else if time.Since(begun) > 90*time.Second {
					t.Fatal(a.Error, listed(site.all()))
				}
				caller.must("close", site.id)
				caller.ask("connect", at+"/p2p-circuit/p2p/"+site.id)
			}
			t.Logf("it answers again after %v", time.Since(begun).Round(time.Millisecond))
			if a := caller.must("echo", site.id); !relayed(a.Addr) {
				return
			}
			gone := site.awaitSince(begun, 60*time.Second, "the hole that leads nowhere is given up", func(e told) bool {
				return e.What == "end" && e.Peer == caller.id && !relayed(e.Addr)
			})
			t.Logf("the site has missed the caller after %v", time.Since(begun).Round(time.Millisecond))
			e := site.awaitSince(gone.At, 100*time.Second, "another hole is tried", func(e told) bool { return e.What == "no hole" || site.directTo(caller)(e) })
			if e.What == "conn" {
				t.Logf("there is another hole after %v", e.At.Sub(begun).Round(time.Millisecond))
				return
			}
			t.Logf("no hole is punched after %v, for it takes itself to be elsewhere", time.Since(begun).Round(time.Millisecond))
			caller.must("close", site.id)
			e = site.awaitSince(begun, 60*time.Second, "another connection to the relay", func(e told) bool {
				return e.What == "conn" && e.Peer == relay.id
			})
			t.Logf("the site knows its address after %v", e.At.Sub(begun).Round(time.Millisecond))
			begun = time.Now()
			caller.reach(site, 10*time.Second, at+"/p2p-circuit") // where it has to ask for its place again
			e = caller.awaitSince(begun, time.Minute, "a hole is punched anew", caller.directTo(site))
			t.Logf("and is called directly %v later", e.At.Sub(begun).Round(time.Millisecond))
		})
	}
}

// TestReachable: a host on a public address finds out, and tells no relay's address.
func TestReachable(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	var at []string
	for range 3 {
		on, ip := w.Public()
		at = append(at, leading("quic", ip, start(t, on, given{Relay: true}).id))
	}
	on, _ := w.Public()
	begun := time.Now()
	site := start(t, on, given{Relays: at})
	e := site.await(60*time.Second, "it is reachable", func(e told) bool { return e.What == "reach" && len(e.Addrs) > 0 })
	t.Logf("reachable at %v after %v", e.Addrs, e.At.Sub(begun).Round(time.Millisecond))
	site.noRelay(begun)
}

// noRelay waits until no address of a relay is told.
func (p *process) noRelay(begun time.Time) {
	p.t.Helper()
	p.until(60*time.Second, "no addresses of relays are told any more", func(all []told) bool {
		var last []string
		for _, e := range all {
			if e.What == "addrs" || e.What == "up" {
				last = e.Addrs
			}
		}
		return !slices.ContainsFunc(last, relayed)
	})
	p.t.Logf("no address of a relay after %v", time.Since(begun).Round(time.Millisecond))
}

// TestForwarded: a router forwards a port, because its owner configured it, or because the host
// requested it by UPnP or NAT-PMP. The host finds out, although few peers could tell it.
func TestForwarded(t *testing.T) {
	for _, by := range []string{"owner", "upnp", "natpmp"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := bed.NewWorld(t)
			var at []string
			for range 2 {
				on, ip := w.Public()
				at = append(at, leading("quic", ip, start(t, on, given{Relay: true}).id))
			}
			home := w.Home(bed.Preserving)
			on := home.Host()
			if by == "owner" {
				home.Forward(4001, "192.168.1.2:4001")
			} else {
				home.PortMap(by)
			}
			begun := time.Now()
			site := start(t, on, given{Relays: at, PortMap: by != "owner"})
			seen := site.await(60*time.Second, "its address is told", func(e told) bool {
				return e.What == "addrs" && slices.ContainsFunc(e.Addrs, func(a string) bool { return strings.HasPrefix(a, "/ip4/"+home.IP+"/") })
			})
			t.Logf("its address is told after %v: %v", seen.At.Sub(begun).Round(time.Millisecond), seen.Addrs)
			e := site.await(60*time.Second, "it is reachable", func(e told) bool { return e.What == "reach" && len(e.Addrs) > 0 })
			t.Logf("reachable at %v after %v", e.Addrs, e.At.Sub(begun).Round(time.Millisecond))
			site.noRelay(begun)
			caller := start(t, w.Home(bed.Symmetric).Host(), given{})
			caller.must("connect", e.Addrs[0]+"/p2p/"+site.id)
		})
	}
}

// TestLiars: a site behind a router meets four who tell it that everybody reaches it, and it
// stays at its relay.
func TestLiars(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	on, ip := w.Public()
	relay := start(t, on, given{Relay: true})
	var liars []string
	for range 4 {
		on, ip := w.Public()
		liars = append(liars, leading("quic", ip, start(t, on, given{Lies: true}).id))
	}
	site := start(t, w.Home(bed.Preserving).Host(), given{Relays: []string{leading("quic", ip, relay.id)}})
	site.await(10*time.Second, "a place at the relay", placeAt(relay.id))
	for _, l := range liars {
		site.must("connect", l)
	}
	begun := time.Now()
	site.await(10*time.Second, "its address is asked about", func(e told) bool { return e.What == "reach" })
	time.Sleep(10 * time.Second) // in which nothing may happen
	for _, e := range site.all() {
		if e.At.After(begun) && (noPlaceAt(relay.id)(e) || e.What == "reach" && len(e.Addrs) > 0) {
			t.Errorf("it believes them: %s %v", e.What, e.Addrs)
		}
	}
}

// TestRenumbered: a site gets another address on its own network, and is soon connected
// again to a server at which it keeps no place.
func TestRenumbered(t *testing.T) {
	t.Parallel()
	w := bed.NewWorld(t)
	on, ip := w.Public()
	server := start(t, on, given{})
	home := w.Home(bed.Preserving)
	home.NoUDP()
	machine := home.Host()
	site := start(t, machine, given{})
	at := leading("tcp", ip, server.id)
	site.must("connect", at)
	site.must("echo", server.id)
	w.IP(machine, "addr flush dev eth0", "addr add 192.168.1.77/24 dev eth0", "route add default via "+bed.Gateway)
	begun := time.Now()
	site.awaitSince(begun, 20*time.Second, "the connection has ended", func(e told) bool { return e.What == "end" && e.Peer == server.id })
	site.must("connect", at)
	site.must("echo", server.id)
	t.Logf("connected again after %v", time.Since(begun).Round(time.Millisecond))
}
