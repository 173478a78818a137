package mdns

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/miekg/dns"
)

const (
	minQueryInterval = time.Second // from one query to the next, at first
	maxQueryInterval = time.Minute
	ipv6Delay        = 200 * time.Millisecond // from IPv4 to IPv6
	goodbyeDelay     = time.Second            // between a goodbye and the end: RFC 6762, section 10.1

	maxAnswers = 200                    // known ones in a query: 33 bytes each, and those that are missing answer
	maxKnown   = 2 * discovery.MaxSites // instances that a goodbye is noticed of
	maxAddrs   = 8                      // of one host
)

// finder asks who is there and hears the answers. zeroconf's Browse does not do: it
// passes over goodbyes and whatever changes, and asks in such a way that all sites
// answer each time. This one says whom it knows, and those keep silent.
type finder struct {
	emit      func(discovery.Sighting) error
	known     map[string]*instance // by label; those whose record was taken
	nextQuery time.Time            // when the next query is due
	overIPv6  bool                 // it is the one by IPv6, which follows that by IPv4
	lastQuery time.Time
	interval  time.Duration // from that to the next
}

type instance struct {
	site      identity.ID
	until     time.Time
	suspected bool // it, or somebody else, has said goodbye
}

// run finds on a link until ctx ends. What was known on another stays known.
func (f *finder) run(ctx context.Context, l *link) error {
	f.nextQuery, f.overIPv6, f.interval = time.Now(), false, minQueryInterval
	wake := time.NewTimer(0)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-l.failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case p := <-l.packets:
			f.handle(l, p)
		case <-wake.C:
		}
		now := time.Now()
		f.expire(now)
		if !now.Before(f.nextQuery) {
			f.query(l, now)
		}
		wake.Reset(time.Until(f.nextDue()))
	}
}

// query asks all, by IPv4 first: who is known after that answers no second time. Sites
// that were switched on together do not ask together for ever.
func (f *finder) query(l *link, now time.Time) {
	group := group4
	if f.overIPv6 {
		group = group6
	}
	b := f.question(now)
	for on, i := range l.own {
		if i.has(group) {
			l.send(b, on, group)
		}
	}
	if f.overIPv6 = !f.overIPv6; f.overIPv6 {
		f.nextQuery = now.Add(ipv6Delay)
		return
	}
	f.lastQuery, f.nextQuery = now, now.Add(f.interval+rand.N(f.interval/8))
	f.interval = min(2*f.interval, maxQueryInterval)
}

// next is when something is due.
func (f *finder) nextDue() time.Time {
	next := f.nextQuery
	for _, k := range f.known {
		if k.suspected && k.until.Before(next) {
			next = k.until
		}
	}
	return next
}

// leave passes on the goodbyes that nobody has denied, and forgets who is not heard of.
// Of the latter whoever took their records knows how long they hold.
func (f *finder) expire(now time.Time) {
	for label, k := range f.known {
		if k.until.After(now) {
			continue
		}
		delete(f.known, label)
		if k.suspected {
			_ = f.emit(discovery.Sighting{Site: k.site})
		}
	}
}

// question asks who is there besides those that will be known for a while.
func (f *finder) question(now time.Time) []byte {
	var q dns.Msg
	q.Question = []dns.Question{{Name: services, Qtype: dns.TypePTR, Qclass: dns.ClassINET}}
	for label, k := range f.known {
		if rest := k.until.Sub(now); rest >= ttl/2 && len(q.Answer) < maxAnswers {
			q.Answer = append(q.Answer, &dns.PTR{
				Hdr: dns.RR_Header{Name: services, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: uint32(rest.Seconds())},
				Ptr: label + "." + services,
			})
		}
	}
	return pack(&q)
}

// pack is a message of ours as it travels.
func pack(m *dns.Msg) []byte {
	m.Compress = true
	b, err := m.Pack()
	if err != nil {
		panic(err) // it is made of names that fit
	}
	return b
}

var (
	typeLabel = []byte("\x0a_agentsite")
	malformed = discovery.Sighting{Record: []byte{}}
)

// wants reports whether a packet is an answer and may say something of sites.
func isSiteAnswer(b []byte) bool {
	const response = 0x80 // in the third byte
	return len(b) >= 12 && b[2]&response != 0 && bytes.Contains(b, typeLabel)
}

// hear takes in what a packet says of sites.
func (f *finder) handle(l *link, p packet) {
	var m dns.Msg
	if err := m.Unpack(p.bytes); err != nil {
		_ = f.emit(malformed) // who counts is there
		return
	}
	targets, addrs := make(map[string]string), make(map[string][]netip.Addr)
	all := append(append(m.Answer, m.Ns...), m.Extra...)
	for _, rr := range all {
		switch rr := rr.(type) {
		case *dns.SRV:
			targets[rr.Hdr.Name] = rr.Target
		case *dns.A:
			addAddr(addrs, rr.Hdr, rr.A, "")
		case *dns.AAAA:
			addAddr(addrs, rr.Hdr, rr.AAAA, l.own[p.on].Name)
		}
	}
	for _, rr := range all {
		switch rr := rr.(type) {
		case *dns.PTR:
			if rr.Hdr.Name == services && rr.Hdr.Ttl == 0 {
				f.suspectGoodbye(rr.Ptr)
			}
		case *dns.TXT:
			if rr.Hdr.Ttl > 0 && strings.HasSuffix(rr.Hdr.Name, "."+services) {
				at := addrs[targets[rr.Hdr.Name]]
				if from := p.from.Addr(); len(at) == 0 && !from.IsUnspecified() {
					at = []netip.Addr{from}
				}
				f.handleTXT(rr, at)
			}
		}
	}
}

// meet notes an address of a host; one of the link alone needs its zone.
func addAddr(addrs map[string][]netip.Addr, h dns.RR_Header, ip []byte, zone string) {
	a, ok := netip.AddrFromSlice(ip)
	if !ok || h.Ttl == 0 || len(addrs[h.Name]) == maxAddrs {
		return
	}
	if a = a.Unmap(); a.Is6() && a.IsLinkLocalUnicast() {
		a = a.WithZone(zone)
	}
	addrs[h.Name] = append(addrs[h.Name], a)
}

// see passes on what a TXT record says.
func (f *finder) handleTXT(txt *dns.TXT, at []netip.Addr) {
	label := strings.TrimSuffix(txt.Hdr.Name, "."+services)
	site, record, err := parseText(txt.Txt)
	if err != nil || label != discovery.Label(site) {
		_ = f.emit(malformed)
		return
	}
	holds := min(time.Duration(txt.Hdr.Ttl)*time.Second, ttl)
	if f.emit(discovery.Sighting{Site: site, Record: record, At: at, For: holds}) != nil {
		return
	}
	if f.known[label] != nil || len(f.known) < maxKnown {
		f.known[label] = &instance{site: site, until: time.Now().Add(holds)}
	}
}

// doubt asks soon whether somebody has really gone: anybody can say so, and a site whose
// record or address changes says goodbye to the one before. Not at once: who has said
// goodbye and closes down hears for a moment more, and would answer.
func (f *finder) suspectGoodbye(instance string) {
	k := f.known[strings.TrimSuffix(instance, "."+services)]
	if k == nil || k.suspected {
		return
	}
	now := time.Now()
	k.suspected, k.until = true, now.Add(goodbyeDelay)
	if now.Sub(f.lastQuery) >= minQueryInterval && !f.overIPv6 {
		f.nextQuery = now.Add(goodbyeDelay / 2)
	}
}
