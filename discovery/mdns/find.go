package mdns

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/miekg/dns"
)

const (
	minQueryInterval = time.Second // between queries, at first
	maxQueryInterval = time.Minute
	ipv6Delay        = 200 * time.Millisecond // from the query by IPv4 to that by IPv6
	goodbyeDelay     = time.Second            // between a goodbye and the end: RFC 6762, section 10.1

	maxAnswers = 200                    // known answers in a query: 33 bytes each; sites beyond it answer again
	maxKnown   = 2 * discovery.MaxSites // instances whose goodbye is noticed
	maxAddrs   = 8                      // of one host
	addressTTL = 2 * ttl                // of an address that its host announces no more
)

// finder queries for sites and processes answers. zeroconf's Browse ignores goodbyes and
// changes, and makes all sites answer each query; this one sends known answers.
type finder struct {
	emit      func(discovery.Sighting) error
	known     map[string]*instance // by label, those whose record was accepted
	nextQuery time.Time            // when the next query is due
	overIPv6  bool                 // the next query is by IPv6, after that by IPv4
	lastQuery time.Time
	interval  time.Duration // from the last query to the next
}

// instance is a known site.
type instance struct {
	site      identity.ID
	until     time.Time
	at        []netip.Addr // as it was last announced
	seen      []announced  // all addresses, the newest first
	disputed  time.Time    // until then it is announced at other addresses, too
	suspected bool         // somebody sent a goodbye
}

// announced is an address of a site, and when it was last announced.
type announced struct {
	address netip.Addr
	last    time.Time
}

// run finds on a link until ctx ends. Sites known from another link stay known.
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

// query sends a query, by IPv4 first: sites that are known after that do not answer twice.
// The interval is random, so that sites that started together do not query together.
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

// nextDue returns when something is due.
func (f *finder) nextDue() time.Time {
	next := f.nextQuery
	for _, k := range f.known {
		if k.suspected && k.until.Before(next) {
			next = k.until
		}
	}
	return next
}

// expire emits goodbyes that nobody has denied, and forgets expired instances, whose records
// expire by themselves.
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

// question returns a query with the known answers. A disputed one is not among them, so that the
// site itself answers: anybody can repeat its record with other addresses.
func (f *finder) question(now time.Time) []byte {
	var q dns.Msg
	q.Question = []dns.Question{{Name: services, Qtype: dns.TypePTR, Qclass: dns.ClassINET}}
	for label, k := range f.known {
		if rest := k.until.Sub(now); rest >= ttl/2 && !now.Before(k.disputed) && len(q.Answer) < maxAnswers {
			q.Answer = append(q.Answer, &dns.PTR{
				Hdr: dns.RR_Header{Name: services, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: uint32(rest.Seconds())},
				Ptr: label + "." + services,
			})
		}
	}
	return pack(&q)
}

// pack encodes a message.
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

// isSiteAnswer reports whether a packet is a response that may be about sites.
func isSiteAnswer(b []byte) bool {
	const response = 0x80 // in the third byte
	return len(b) >= 12 && b[2]&response != 0 && bytes.Contains(b, typeLabel)
}

// handle processes a packet.
func (f *finder) handle(l *link, p packet) {
	var m dns.Msg
	if err := m.Unpack(p.bytes); err != nil {
		_ = f.emit(malformed) // counted there
		return
	}
	targets, addrs := make(map[string]string), make(map[string][]netip.Addr)
	all := append(append(m.Answer, m.Ns...), m.Extra...)
	for _, rr := range all {
		switch rr := rr.(type) {
		case *dns.SRV:
			targets[rr.Hdr.Name] = rr.Target
		case *dns.A:
			addAddr(addrs, l.own[p.on], rr.Hdr, rr.A)
		case *dns.AAAA:
			addAddr(addrs, l.own[p.on], rr.Hdr, rr.AAAA)
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

// addAddr adds an address of a host, with its zone if it is link-local. It ignores public addresses of
// other networks: else a neighbour would have us connect to anybody.
func addAddr(addrs map[string][]netip.Addr, on iface, h dns.RR_Header, ip []byte) {
	a, ok := netip.AddrFromSlice(ip)
	a = a.Unmap()
	if !ok || h.Ttl == 0 || len(addrs[h.Name]) == maxAddrs || !a.IsPrivate() && !on.contains(a) {
		return
	}
	if a.Is6() && a.IsLinkLocalUnicast() {
		a = a.WithZone(on.Name)
	}
	addrs[h.Name] = append(addrs[h.Name], a)
}

// handleTXT emits the record in a TXT record.
func (f *finder) handleTXT(txt *dns.TXT, at []netip.Addr) {
	label := strings.TrimSuffix(txt.Hdr.Name, "."+services)
	site, record, err := parseText(txt.Txt)
	if err != nil || label != discovery.Label(site) {
		_ = f.emit(malformed)
		return
	}
	holds := min(time.Duration(txt.Hdr.Ttl)*time.Second, ttl)
	k := f.known[label]
	seen := k.withAddresses(at, time.Now())
	var all []netip.Addr
	for _, a := range seen {
		all = append(all, a.address)
	}
	if f.emit(discovery.Sighting{Site: site, Record: record, At: all, For: holds}) != nil {
		return
	}
	if k == nil && len(f.known) >= maxKnown {
		return
	}
	now := &instance{site: site, until: time.Now().Add(holds), at: at, seen: seen}
	if k != nil {
		now.disputed = k.disputed
		if !slices.Equal(k.at, at) && k.until.After(now.disputed) {
			now.disputed = k.until
		}
	}
	f.known[label] = now
}

// withAddresses returns the addresses of an instance, nil for a new one, after those were announced. New
// ones come before the others, which are those of its other interfaces, or that somebody else
// announces. After a goodbye there are no others, and addresses that are announced no more lapse.
func (k *instance) withAddresses(at []netip.Addr, now time.Time) (all []announced) {
	var before []announced
	if k != nil && !k.suspected {
		before = slices.DeleteFunc(slices.Clone(k.seen), func(a announced) bool { return now.Sub(a.last) > addressTTL })
	}
	for _, address := range at {
		i := slices.IndexFunc(before, func(a announced) bool { return a.address == address })
		if i < 0 {
			all = append(all, announced{address, now})
		} else {
			before[i].last = now
		}
	}
	all = append(all, before...)
	return all[:min(len(all), maxAddrs)]
}

// suspectGoodbye queries soon whether a site has really gone. Anybody can send a goodbye, and a
// site sends one before each change of its record or address. It waits, because a stopping site
// still answers for a moment.
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
