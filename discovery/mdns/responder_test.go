package mdns

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

const always, wanted = "agentsite-aaaaaaaa.local.", "greenhouse.local."

// naming runs a namer on a wire of two interfaces in a bubble.
func naming(t *testing.T, test func(w *wire)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, []string{"192.0.2.1/24", "fe80::1/64"}, []string{"198.51.100.1/24", "2001:db8::1/64", "fe80::2/64"})
		n := nameResponder{link: w.link, keyName: always, siteName: wanted}
		w.wants = n.mentionsName
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.run(ctx) }()
		test(w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func question(qtype uint16, names ...string) *dns.Msg {
	q := new(dns.Msg)
	q.Id = 7
	for _, n := range names {
		q.Question = append(q.Question, dns.Question{Name: n, Qtype: qtype, Qclass: dns.ClassINET})
	}
	return q
}

// said renders a message in short: "greenhouse 120 192.0.2.1".
func said(list []dns.RR) (short []string) {
	for _, rr := range list {
		f := strings.Fields(rr.String())
		short = append(short, strings.TrimSuffix(f[0], ".local.")+" "+f[1]+" "+f[4])
	}
	return short
}

func hold(w *wire) {
	time.Sleep(3 * time.Second)
	w.take()
}

// TestProbe: three questions, then the name is announced twice, and nothing after that.
func TestProbe(t *testing.T) {
	naming(t, func(w *wire) {
		time.Sleep(probes * probeInterval)
		out := w.take()
		if len(out) != probes*4 || out[0].Response || out[0].Question[0].Name != wanted || out[0].Question[0].Qtype != dns.TypeANY {
			t.Errorf("%v", out)
		}
		for _, o := range out {
			want := [][]string{{"greenhouse 120 192.0.2.1", "greenhouse 120 fe80::1"}, {"greenhouse 120 198.51.100.1", "greenhouse 120 2001:db8::1"}}[o.on-1]
			if !slices.Equal(said(o.Ns), want) {
				t.Errorf("on %d: %q", o.on, said(o.Ns))
			}
		}
		time.Sleep(probeInterval)
		for range 2 {
			if out := w.take(); len(out) != 4 || !out[0].Response || len(said(out[0].Answer)) != 2 || out[0].Answer[0].Header().Class != dns.ClassINET|cacheFlush {
				t.Errorf("%v", out)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
	})
}

// TestTaken: the owner of a name keeps it, and it is tried again when the owner has gone.
func TestTaken(t *testing.T) {
	naming(t, func(w *wire) {
		time.Sleep(2 * probeInterval)
		w.say("192.0.2.2:5353", response([]dns.RR{rr(t, "GREENhouse.local. 120 IN A 192.0.2.2")}))
		w.take()
		time.Sleep(nameRetry - time.Second)
		w.say("192.0.2.2:5353", question(dns.TypeA, wanted))
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
		w.say("192.0.2.2:5353", question(dns.TypeA, always))
		if out := w.take(); len(out) != 1 {
			t.Errorf("%v", out)
		}
		time.Sleep(5 * time.Second)
		if out := w.take(); len(out) != probes*4+8 {
			t.Errorf("%v", out)
		}
	})
}

// TestThisHostsName: where the host itself has the name, another program answers for it.
func TestThisHostsName(t *testing.T) {
	naming(t, func(w *wire) {
		time.Sleep(2 * probeInterval)
		w.say("192.0.2.1:5353", response([]dns.RR{rr(t, wanted+" 120 IN A 192.0.2.1")}))
		hold(w)
		w.say("192.0.2.2:5353", question(dns.TypeA, wanted))
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
	})
}

// TestConflict: a name that another host has is given up; an echo of the own announcement is
// ignored.
func TestConflict(t *testing.T) {
	naming(t, func(w *wire) {
		hold(w)
		w.say("192.0.2.1:5353", response([]dns.RR{rr(t, wanted+" 120 IN A 198.51.100.1"), rr(t, wanted+" 120 IN AAAA fe80::2")}))
		w.say("192.0.2.2:5353", response([]dns.RR{rr(t, wanted+" 0 IN A 192.0.2.2"), rr(t, "other.local. 120 IN A 192.0.2.2")}))
		w.say("192.0.2.9:5353", question(dns.TypeA, wanted))
		if out := w.take(); len(out) != 1 || !slices.Equal(said(out[0].Answer), []string{"greenhouse 120 192.0.2.1"}) || out[0].to != group4 || out[0].on != 1 {
			t.Errorf("%v", out)
		}
		w.say("192.0.2.2:5353", response([]dns.RR{rr(t, wanted+" 120 IN A 192.0.2.2")}))
		time.Sleep(2 * time.Second)
		w.say("192.0.2.9:5353", question(dns.TypeA, wanted))
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
	})
}

// TestTwoProbe: two who want a name at once both begin anew; one who has it says so.
func TestTwoProbe(t *testing.T) {
	naming(t, func(w *wire) {
		time.Sleep(2 * probeInterval)
		other := question(dns.TypeANY, wanted)
		other.Ns = []dns.RR{rr(t, wanted+" 120 IN A 192.0.2.2")}
		w.take()
		w.say("192.0.2.2:5353", other)
		time.Sleep(900 * time.Millisecond)
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
		time.Sleep(5 * time.Second)
		if out := w.take(); len(out) != probes*4+8 {
			t.Errorf("%v", out)
		}
		for range 2 { // at once, however often
			w.say("192.0.2.2:5353", other)
			if out := w.take(); len(out) != 1 || len(out[0].Answer) != 2 {
				t.Errorf("%v", out)
			}
		}
	})
}

// TestAnswers: to all, to one, and to programs that know plain DNS only.
func TestAnswers(t *testing.T) {
	naming(t, func(w *wire) {
		hold(w)
		for range 20 {
			w.say("192.0.2.9:5353", question(dns.TypeAAAA, strings.ToUpper(always)))
		}
		if out := w.take(); len(out) != 1 || !slices.Equal(said(out[0].Answer), []string{"agentsite-aaaaaaaa 120 fe80::1"}) || out[0].to != group4 || len(out[0].Question) != 0 || out[0].Id != 0 {
			t.Errorf("%v", out)
		}
		w.say("[fe80::9]:5353", question(dns.TypeANY, always, wanted))
		if out := w.take(); len(out) != 1 || len(out[0].Answer) != 4 || out[0].to != group6 {
			t.Errorf("%v", out)
		}
		q := question(dns.TypeA, always)
		q.Question[0].Qclass |= cacheFlush
		w.say("192.0.2.9:5353", q)
		if out := w.take(); len(out) != 1 || out[0].to != netip.MustParseAddrPort("192.0.2.9:5353") {
			t.Errorf("%v", out)
		}
		w.say("192.0.2.9:40000", question(dns.TypeA, always))
		if out := w.take(); len(out) != 1 || out[0].to != netip.MustParseAddrPort("192.0.2.9:40000") || out[0].Id != 7 || len(out[0].Question) != 1 ||
			!slices.Equal(said(out[0].Answer), []string{"agentsite-aaaaaaaa 10 192.0.2.1"}) || out[0].Answer[0].Header().Class != dns.ClassINET {
			t.Errorf("%v", out)
		}
		time.Sleep(answerInterval)
		both := question(dns.TypeA, always)
		both.Question = append(both.Question, question(dns.TypeAAAA, always).Question...)
		w.say("192.0.2.9:5353", both)
		if out := w.take(); len(out) != 1 || len(out[0].Answer) != 2 {
			t.Errorf("%v", out)
		}
		w.say("192.0.2.9:5353", question(dns.TypeTXT, always))
		w.say("192.0.2.9:5353", question(dns.TypeA, "other.local."))
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
	})
}

// TestGivesUp: with its end the names end, and a link that fails is no endless loop.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, []string{"192.0.2.1/24"})
		n := nameResponder{link: w.link, keyName: always, siteName: wanted}
		w.wants = n.mentionsName
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.run(ctx) }()
		hold(w)
		cancel()
		<-done
		out := w.take()
		if len(out) != 2 || said(out[0].Answer)[0] != "agentsite-aaaaaaaa 0 192.0.2.1" || said(out[1].Answer)[0] != "greenhouse 0 192.0.2.1" {
			t.Errorf("%v", out)
		}
		broken := errors.New("no sockets any more")
		w.fail <- broken
		if err := n.run(t.Context()); err != broken {
			t.Error(err)
		}
		w.fail <- broken
		f := finder{known: make(map[string]*instance), emit: w.see}
		if err := f.run(t.Context(), w.link); err != broken {
			t.Error(err)
		}
	})
}

// TestSubtype: a query for a subtype is answered with the instance, at most once a second, and not with known answers.
func TestSubtype(t *testing.T) {
	const name, instance = "_directory._sub._wot._tcp.local.", "agentsite-aaaaaaaa._wot._tcp.local."
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, []string{"192.0.2.1/24"})
		n := nameResponder{link: w.link, keyName: always, siteName: wanted, subtypes: []subtype{{name, instance}}}
		w.wants = n.mentionsName
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.run(ctx) }()
		hold(w)
		asks := question(dns.TypePTR, "_Directory._sub._wot._tcp.local.")
		for range 2 {
			w.say("192.0.2.9:5353", asks)
		}
		out := w.take()
		if len(out) != 1 || out[0].to != group4 || len(out[0].Answer) != 1 || out[0].Answer[0].String() != name+"\t120\tIN\tPTR\t"+instance {
			t.Errorf("%v", out)
		}
		time.Sleep(2 * time.Second)
		known := question(dns.TypePTR, name)
		known.Answer = []dns.RR{rr(t, name+" 61 IN PTR "+instance)}
		w.say("192.0.2.9:5353", known)
		w.say("192.0.2.9:5353", question(dns.TypeTXT, name))
		w.say("192.0.2.9:5353", question(dns.TypePTR, "_printer._sub._wot._tcp.local."))
		if out := w.take(); len(out) != 0 {
			t.Errorf("%v", out)
		}
		known.Answer = []dns.RR{rr(t, name+" 59 IN PTR "+instance)}
		w.say("192.0.2.9:5353", known)
		w.say("192.0.2.9:1234", asks) // of a program that knows plain DNS only
		if out := w.take(); len(out) != 2 || out[1].Answer[0].Header().Ttl != 10 || out[1].to.Port() != 1234 {
			t.Errorf("%v", out)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestMentionsName: a message with neither name is not even decoded.
func TestMentionsName(t *testing.T) {
	n := nameResponder{keyName: always, siteName: wanted}
	for name, want := range map[string]bool{always: true, strings.ToUpper(wanted): true, "GreenHouse.local.": true, "printer.local.": false, "greenhous.local.": false} {
		if got := n.mentionsName(pack(question(dns.TypeA, name))); got != want {
			t.Errorf("%s is wanted: %v", name, got)
		}
	}
	if !isSiteAnswer(pack(response([]dns.RR{rr(t, services+" 120 IN PTR x."+services)}))) || isSiteAnswer(pack(question(dns.TypePTR, services))) || isSiteAnswer(pack(response([]dns.RR{rr(t, "x.local. 120 IN A 192.0.2.1")}))) {
		t.Error("a finder wants something else than answers of sites")
	}
}

// TestIsLocal: unicast packets from another network are ignored.
func TestIsLocal(t *testing.T) {
	w := newWire(t, []string{"192.0.2.1/24", "2001:db8::1/64"})
	for from, want := range map[string]bool{
		"192.0.2.77": true, "192.0.3.77": false, "203.0.113.1": false, "2001:db8::77": true, "2001:db8:1::77": false, "fe80::77%eth0": true,
	} {
		if got := w.isLocal(packet{on: 1, from: netip.AddrPortFrom(netip.MustParseAddr(from), 5353)}); got != want {
			t.Errorf("%s is near: %v", from, got)
		}
	}
}
