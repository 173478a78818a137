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

// TestQuota: if one group is at its limit, no slot is taken in any, and a released slot can be
// taken.
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

// TestBucket: tokens come back with time, and what was refused is owed where there is a debt.
func TestBucket(t *testing.T) {
	r, start := Rate{PerSecond: 0.5, Burst: 2}, time.Unix(1, 0)
	var b Bucket
	for i, c := range []struct {
		at time.Duration
		ok bool
	}{{0, true}, {0, true}, {0, false}, {time.Second, false}, {2 * time.Second, true}, {time.Hour, true}, {time.Hour, true}, {time.Hour, false}} {
		if got := b.Take(start.Add(c.at), r, 1); got != c.ok {
			t.Errorf("%d: %v", i, got)
		}
	}
	late := start.Add(time.Hour)
	if d := b.Wait(late, r); d != 2*time.Second {
		t.Error(d)
	}
	r.Debt = 3
	for range 100 {
		b.Take(late, r, 1)
	}
	if n := b.Tokens(late, r); n != -3 {
		t.Error(n)
	}
}

// TestRate: each key has its burst, and then the rate; an idle key is forgotten.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := RateLimiter{Rate: Rate{PerSecond: 1, Burst: 3}}
		often := func(groups ...any) (n int) {
			for r.Allow(groups...) {
				n++
			}
			return n
		}
		if n := often("eve"); n != 3 {
			t.Errorf("eve may do it %d times", n)
		}
		if n := often("ann", "eve"); n != 0 || len(r.buckets) != 1 {
			t.Errorf("with eve, ann may do it %d times, of %v", n, r.buckets)
		}
		time.Sleep(2 * time.Second)
		if n := often("ann", "eve"); n != 2 {
			t.Errorf("after two seconds it may be done %d times", n)
		}
		if r.Take(3, "ann", "bob") || r.Take(4, "bob") || !r.Take(3, "bob") || r.Allow("bob") {
			t.Error("many tokens are taken of who has fewer, or not of who has them")
		}
		time.Sleep(time.Hour)
		for i := range 10_000 {
			r.Allow(i)
			time.Sleep(time.Millisecond)
		}
		if n := len(r.buckets); n > 3000 {
			t.Errorf("%d groups are remembered", n)
		}
		if n := often("eve"); n != 3 {
			t.Errorf("eve has rested and may do it %d times", n)
		}
	})
}
