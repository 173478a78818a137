package mdns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/discoverytest"
	"agentsite/node/identity"

	"github.com/miekg/dns"
)

// says returns a site's announcement with a TTL in seconds; 0 is a goodbye.
func says(t testing.TB, r *discovery.Signed, ttl uint32, addrs ...dns.RR) *dns.Msg {
	t.Helper()
	port, text, err := serviceOf(r)
	if err != nil {
		t.Fatal(err)
	}
	instance := discovery.Label(r.Site) + "." + services
	h := func(name string, rrtype uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
	}
	m := response([]dns.RR{
		&dns.PTR{Hdr: h(services, dns.TypePTR), Ptr: instance},
		&dns.SRV{Hdr: h(instance, dns.TypeSRV), Port: uint16(port), Target: discovery.HostName(r.Site) + "."},
		&dns.TXT{Hdr: h(instance, dns.TypeTXT), Txt: text},
	})
	m.Extra = addrs
	return m
}

// looking runs a finder on a wire in a bubble.
func looking(t *testing.T, test func(w *wire)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, []string{"192.0.2.100/24", "fe80::100/64"})
		f := finder{known: make(map[string]*instance), emit: w.see}
		w.wants = isSiteAnswer
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.run(ctx, w.link) }()
		if out := w.take(); len(out) != 1 || out[0].to != group4 {
			t.Errorf("at once: %v", out)
		}
		time.Sleep(ipv6Delay)
		test(w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// burst is the next question, asked on IPv4 and then on IPv6, and after how long it came.
func (w *wire) burst(t *testing.T) (*dns.Msg, time.Duration) {
	t.Helper()
	w.take()
	start := time.Now()
	for time.Since(start) < 10*time.Minute {
		time.Sleep(50 * time.Millisecond)
		out := w.take()
		if len(out) == 0 {
			continue
		}
		took := time.Since(start)
		time.Sleep(ipv6Delay)
		also := w.take()
		if len(out) != 1 || len(also) != 1 || out[0].to != group4 || also[0].to != group6 || out[0].Question[0].Name != services || out[0].Question[0].Qtype != dns.TypePTR {
			t.Errorf("%v, %v", out, also)
		}
		return out[0].Msg, took
	}
	t.Fatal("it does not ask")
	return nil, 0
}

// TestAsks: it asks at once, then ever more rarely, and once a minute in the end.
func TestAsks(t *testing.T) {
	looking(t, func(w *wire) {
		for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 60} {
			want *= time.Second
			if _, took := w.burst(t); took < want-ipv6Delay || took > want*9/8+ipv6Delay {
				t.Errorf("it asks after %v, want %v", took, want)
			}
		}
	})
}

// TestKnown: queries list known sites as known answers, until their records are old.
func TestKnown(t *testing.T) {
	looking(t, func(w *wire) {
		time.Sleep(100 * time.Second)
		w.burst(t)
		time.Sleep(30 * time.Second)
		r := discoverytest.Record(identity.New(), 1)
		host := discovery.HostName(r.Site) + "."
		w.say("192.0.2.1:5353", says(t, r, 4500, rr(t, host+" 120 IN A 192.0.2.1"), rr(t, host+" 120 IN AAAA fe80::1"), rr(t, host+" 120 IN AAAA fd00::1"), rr(t, host+" 120 IN A 198.51.100.1"), rr(t, host+" 120 IN AAAA 2001:db8::1"), rr(t, "x.local. 120 IN A 192.0.2.66")))
		want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fd00::1")} // and no public ones of other networks
		if seen := w.sightings(); len(seen) != 1 || seen[0].Site != r.Site || !bytes.Equal(seen[0].Record, r.Short()) || !slices.Equal(seen[0].At, want) || seen[0].For != ttl {
			t.Fatalf("%+v", seen)
		}
		q, took := w.burst(t)
		if len(q.Answer) != 1 || q.Answer[0].(*dns.PTR).Ptr != discovery.Label(r.Site)+"."+services || q.Answer[0].Header().Ttl != uint32((ttl-took).Seconds()) {
			t.Errorf("after %v: %v", took, q)
		}
		if q, _ := w.burst(t); len(q.Answer) != 0 {
			t.Errorf("%v", q)
		}
		time.Sleep(10 * time.Minute)
		if len(w.sightings()) != 1 {
			t.Errorf("nobody said goodbye: %+v", w.sightings())
		}
	})
}

// TestDisputed: a site that is announced at other addresses, too, is no known answer, so that it
// answers itself.
func TestDisputed(t *testing.T) {
	looking(t, func(w *wire) {
		r := discoverytest.Record(identity.New(), 1)
		at := func(address string) *dns.Msg {
			return says(t, r, 120, rr(t, discovery.HostName(r.Site)+". 120 IN A "+address))
		}
		for range 2 {
			w.say("192.0.2.1:5353", at("192.0.2.1"))
		}
		if q, _ := w.burst(t); len(q.Answer) != 1 {
			t.Errorf("%v", q)
		}
		w.say("192.0.2.66:5353", at("192.0.2.77"))
		w.say("192.0.2.66:5353", at("192.0.2.77"))
		if q, _ := w.burst(t); len(q.Answer) != 0 {
			t.Errorf("it keeps the site from answering: %v", q)
		}
		time.Sleep(ttl)
		w.say("192.0.2.1:5353", at("192.0.2.1"))
		if q, _ := w.burst(t); len(q.Answer) != 1 {
			t.Errorf("after the other addresses have expired: %v", q)
		}
	})
}

// TestRefused: a refused site is never listed as a known answer.
func TestRefused(t *testing.T) {
	looking(t, func(w *wire) {
		r := discoverytest.Record(identity.New(), 1)
		m := says(t, r, 120)
		txt := m.Answer[2].(*dns.TXT)
		for i, s := range txt.Txt {
			if strings.HasPrefix(s, "r0=") {
				txt.Txt[i] = s[:20]
			}
		}
		w.say("192.0.2.1:5353", m)
		m = says(t, discoverytest.Record(identity.New(), 1), 120)
		m.Answer[2].Header().Name = "greenhouse." + services
		w.say("192.0.2.1:5353", m)
		w.sayBytes("192.0.2.1:5353", append(pack(says(t, r, 120))[:80], typeLabel...))
		if len(w.sightings()) != 3 {
			t.Fatalf("%+v", w.sightings())
		}
		for _, s := range w.sightings() {
			if _, err := discovery.Open(s.Record); !errors.Is(err, discovery.ErrMalformed) {
				t.Errorf("%+v", s)
			}
		}
		if q, _ := w.burst(t); len(q.Answer) != 0 {
			t.Errorf("%v", q)
		}
	})
}

// TestGoodbye: it is asked whether a goodbye is one.
func TestGoodbye(t *testing.T) {
	looking(t, func(w *wire) {
		time.Sleep(100 * time.Second)
		w.burst(t)
		time.Sleep(30 * time.Second)
		stays, goes := discoverytest.Record(identity.New(), 1), discoverytest.Record(identity.New(), 1)
		w.say("192.0.2.1:5353", says(t, stays, 120))
		w.say("192.0.2.2:5353", says(t, goes, 120))
		if at := w.sightings()[1].At; !slices.Equal(at, []netip.Addr{netip.MustParseAddr("192.0.2.2")}) {
			t.Errorf("%v", at) // it did not say where it is
		}
		w.take()
		w.say("192.0.2.2:5353", says(t, goes, 0))
		if out := w.take(); len(out) != 0 {
			t.Errorf("who goes is asked while it still hears: %v", out)
		}
		time.Sleep(goodbyeDelay / 2)
		if out := w.take(); len(out) != 1 || len(out[0].Answer) != 1 {
			t.Errorf("%v", out)
		}
		time.Sleep(ipv6Delay)
		w.take()
		w.say("192.0.2.66:5353", says(t, stays, 0)) // somebody else lies
		w.say("192.0.2.66:5353", says(t, discoverytest.Record(identity.New(), 1), 0))
		if out := w.take(); len(out) != 0 {
			t.Errorf("it asks twice in a second: %v", out)
		}
		before := len(w.sightings())
		w.say("192.0.2.1:5353", says(t, stays, 120))
		time.Sleep(goodbyeDelay)
		if seen := w.sightings()[before:]; len(seen) != 2 || seen[0].Site != stays.Site || seen[1].Site != goes.Site || seen[1].Record != nil {
			t.Errorf("%+v", seen)
		}
		time.Sleep(10 * time.Minute)
		if n := len(w.sightings()) - before; n != 2 {
			t.Errorf("%d sightings", n)
		}
	})
}

// TestOtherTalk: messages that are not about sites are ignored.
func TestOtherTalk(t *testing.T) {
	looking(t, func(w *wire) {
		m := response([]dns.RR{rr(t, "_ipp._tcp.local. 120 IN PTR printer._ipp._tcp.local."), rr(t, `printer._ipp._tcp.local. 120 IN TXT "a=b"`)})
		w.say("192.0.2.1:5353", m)
		q := new(dns.Msg)
		q.Question = []dns.Question{{Name: services, Qtype: dns.TypePTR, Qclass: dns.ClassINET}}
		w.say("192.0.2.1:5353", q)
		w.sayBytes("192.0.2.1:5353", []byte("hello"))
		if len(w.sightings()) != 0 {
			t.Errorf("%+v", w.sightings())
		}
	})
}

// TestFinderFlood: stored sites, emitted sightings and queries stay within their limits.
func TestFinderFlood(t *testing.T) {
	w := newWire(t, []string{"192.0.2.100/24"})
	f := finder{known: make(map[string]*instance), emit: w.see}
	for range maxKnown + 100 {
		r := discoverytest.Record(identity.New(), 1)
		m := says(t, r, 120)
		for n := range 20 {
			m.Extra = append(m.Extra, rr(t, fmt.Sprintf("%s. 120 IN A 192.0.2.%d", discovery.HostName(r.Site), n)))
		}
		f.handle(w.link, packet{pack(m), 1, netip.MustParseAddrPort("192.0.2.66:5353")})
	}
	if len(w.seen) != maxKnown+100 || len(f.known) != maxKnown || len(w.seen[0].At) != maxAddrs {
		t.Errorf("%d are seen and %d known, at %v", len(w.seen), len(f.known), w.seen[0].At)
	}
	var q dns.Msg
	if b := f.question(time.Now()); len(b) > maxPacket || q.Unpack(b) != nil || len(q.Answer) != maxAnswers {
		t.Errorf("a question of %d bytes with %d answers", len(b), len(q.Answer))
	}
}

func TestServiceOf(t *testing.T) {
	key := identity.New()
	r := discoverytest.Record(key, 1).Record
	for i := range 7 {
		r.Addresses = append(r.Addresses, fmt.Sprintf("https://[2001:db8:1111:2222:3333:4444:5555:%d]:65535/mcp", 6666+i))
	}
	long, err := r.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	port, text, err := serviceOf(long)
	if err != nil || port != 8473 || text[0] != "id="+r.Site.PeerID() || text[1] != "path=/mcp" || text[2] != "name=greenhouse" {
		t.Errorf("%d %q %v", port, text, err)
	}
	total := 0
	for _, s := range text {
		if len(s) > maxString {
			t.Errorf("%q is too long", s)
		}
		total += 1 + len(s)
	}
	if total > 1300 {
		t.Errorf("a TXT record has %d bytes", total)
	}
	if site, b, err := parseText(text); err != nil || site != r.Site || !bytes.Equal(b, long.Short()) {
		t.Errorf("%v %x %v", site, b, err)
	}
	small := discoverytest.Record(key, 2).Record
	small.Offer = []discovery.Kind{{Kind: "switch", Points: []string{"lamp"}}}
	whole, err := small.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, text, err := serviceOf(whole); err != nil {
		t.Error(err)
	} else if _, b, err := parseText(text); err != nil || !bytes.Equal(b, whole.Bytes()) {
		t.Errorf("an offer that fits is left out: %v", err)
	}
	if site, b, err := parseText(append(text, "r0=AAAA", "id=x")); err != nil || site != r.Site || !bytes.Equal(b, long.Short()) {
		t.Errorf("of two alike the first counts: %v %x %v", site, b, err)
	}
	for _, bad := range [][]string{nil, {"id=x"}, {text[0]}, {text[0], "r0=" + text[3][3:] + "="}, {text[0], "r0=+/"}, {text[3]}, {"", "=", "id"}} {
		if _, _, err := parseText(bad); err == nil {
			t.Errorf("%q has a record", bad)
		}
	}
	for addresses, want := range map[string]int{
		"https://a/mcp": 443, "http://a/": 80, "http://a:65535/": 65535, "http://a:65536/": 0,
		"/ip4/192.0.2.7/tcp/1 http://a:8473/mcp": 8473, "/ip4/192.0.2.7/tcp/1": 0,
	} {
		r.Addresses = strings.Fields(addresses)
		s, err := r.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		if port, _, err := serviceOf(s); port != want && want != 0 || (err == nil) != (want != 0) {
			t.Errorf("%s: %d, %v", addresses, port, err)
		}
	}
}

// FuzzPacket: whatever comes off the link ends nothing, and takes no more than it may.
func FuzzPacket(f *testing.F) {
	r := discoverytest.Record(identity.New(), 1)
	f.Add(pack(says(f, r, 120)))
	f.Add(pack(says(f, r, 0)))
	q := new(dns.Msg)
	q.Question = []dns.Question{{Name: "greenhouse.local.", Qtype: dns.TypeANY, Qclass: dns.ClassINET}}
	f.Add(pack(q))
	q.Ns = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "greenhouse.local.", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 120}, A: []byte{192, 0, 2, 9}}}
	f.Add(pack(q))
	q.Response, q.Answer = true, q.Ns
	f.Add(pack(q))
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWire(t, []string{"192.0.2.100/24", "fe80::100/64"})
		seen := 0
		finder := finder{known: make(map[string]*instance), emit: func(s discovery.Sighting) error {
			if seen++; len(s.At) > maxAddrs || s.For > ttl || len(s.Record) > maxPacket {
				t.Fatalf("%+v", s)
			}
			return nil
		}}
		namer := nameResponder{link: w.link, keyName: "agentsite-aaaaaaaa.local.", siteName: "greenhouse.local.", probed: probes + 1, last: make(map[answerKey]time.Time)}
		p := packet{b, 1, netip.MustParseAddrPort("192.0.2.1:5353")}
		if isSiteAnswer(b) {
			finder.handle(w.link, p)
			finder.handle(w.link, p)
		}
		if namer.mentionsName(b) {
			namer.handle(p)
		}
		if len(w.out) > 1 || seen > 2*len(b) {
			t.Fatalf("%d answers, %d sightings", len(w.out), seen)
		}
		_ = finder.question(time.Now())
	})
}

// TestMoved: after its goodbye a site is where it is announced since, and nowhere else. Without one,
// it stays where it was, too, as another announcement may be a neighbour's or of its other interface,
// until that has not been announced for a while.
func TestMoved(t *testing.T) {
	looking(t, func(w *wire) {
		r := discoverytest.Record(identity.New(), 1)
		goodbye := func() { w.say("192.0.2.1:5353", says(t, r, 0)) }
		at := func(hosts ...string) {
			var addrs []dns.RR
			for _, a := range hosts {
				addrs = append(addrs, rr(t, discovery.HostName(r.Site)+". 120 IN A 192.0.2."+a))
			}
			w.say("192.0.2.1:5353", says(t, r, 120, addrs...))
		}
		for i, step := range []struct {
			do   func()
			want []string
		}{
			{func() { at("2") }, []string{"2"}},
			{func() { goodbye(); at("50") }, []string{"50"}},
			{func() { goodbye(); at("2") }, []string{"2"}},
			{func() { at("66") }, []string{"66", "2"}},
			{func() { at("2") }, []string{"66", "2"}},
			{func() { goodbye(); at("2", "7") }, []string{"2", "7"}},
			{func() { time.Sleep(addressTTL - ttl); at("2"); time.Sleep(ttl + time.Second); at("2") }, []string{"2"}},
		} {
			step.do()
			synctest.Wait()
			var got []string
			all := w.sightings()
			for _, a := range all[len(all)-1].At {
				got = append(got, strings.TrimPrefix(a.String(), "192.0.2."))
			}
			if !slices.Equal(got, step.want) {
				t.Errorf("step %d: at %q, not %q", i, got, step.want)
			}
		}
	})
}
