package quota

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
)

func TestPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7/32",
		"::ffff:192.0.2.7":       "192.0.2.7/32",
		"2001:db8:1:2ff:3::4":    "2001:db8:1:200::/56",
		"fe80::1%eth0":           "fe80::/56",
		"2001:db8:1:201:ffff::1": "2001:db8:1:200::/56",
	} {
		if got := Prefix(netip.MustParseAddr(text)); got.String() != want {
			t.Errorf("%s is in %v, not in %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"/ip4/192.0.2.7/tcp/1":           "192.0.2.7/32",
		"/ip6/2001:db8::1/udp/1/quic-v1": "2001:db8::/56",
		"/ip4/192.0.2.7/tcp/1/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN/p2p-circuit": "192.0.2.7/32",
		"/dns4/relay.example/tcp/1": "invalid Prefix",
	} {
		if got := PrefixOf(ma.StringCast(text)); got.String() != want {
			t.Errorf("%s is in %v, not in %s", text, got, want)
		}
	}
}

// TestQuota: what one group refuses is taken in none, and what is given back can be taken.
func TestQuota(t *testing.T) {
	var q Quota
	type key string
	ann, eve := Limit{key("ann"), 2}, Limit{key("eve"), 2}
	all, strangers := Limit{"all", 4}, Limit{"all", 3}
	for range 2 {
		if !q.Take(eve, strangers) {
			t.Fatal("there is room")
		}
	}
	if q.Take(strangers, eve) {
		t.Error("a key holds more than it may")
	}
	if n := q.Held("all"); n != 2 {
		t.Errorf("what was refused holds %d", n-2)
	}
	if !q.Take(ann, strangers) || q.Take(ann, strangers) {
		t.Error("strangers hold more or less than they may together")
	}
	if !q.Take(ann, all) || q.Take(all) {
		t.Error("the reserve is not there, or is larger")
	}
	for range 2 {
		q.Release(ann, all)
		q.Release(eve, all)
	}
	if len(q.held) > 0 {
		t.Errorf("%v is left", q.held)
	}
}

// TestRate: each may do its burst, and then as often as the rate says; who has rested is
// forgotten.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := RateLimiter{Every: time.Second, Burst: 3}
		often := func(groups ...any) (n int) {
			for r.Allow(groups...) {
				n++
			}
			return n
		}
		if n := often("eve"); n != 3 {
			t.Errorf("eve may do it %d times", n)
		}
		if n := often("ann", "eve"); n != 0 || len(r.free) != 1 {
			t.Errorf("with eve, ann may do it %d times, of %v", n, r.free)
		}
		time.Sleep(2 * time.Second)
		if n := often("ann", "eve"); n != 2 {
			t.Errorf("after two seconds it may be done %d times", n)
		}
		time.Sleep(time.Hour)
		for i := range 10_000 {
			r.Allow(i)
			time.Sleep(time.Millisecond)
		}
		if n := len(r.free); n > 3000 {
			t.Errorf("%d groups are remembered", n)
		}
		if n := often("eve"); n != 3 {
			t.Errorf("eve has rested and may do it %d times", n)
		}
	})
}
