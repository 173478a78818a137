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
	askLeast = time.Second // from one query to the next, at first
	askMost  = time.Minute
	askAlso  = 200 * time.Millisecond // from IPv4 to IPv6
	doubt    = time.Second            // between a goodbye and the end: RFC 6762, section 10.1

	maxAnswers = 200                    // known ones in a query: 33 bytes each, and those that are missing answer
	maxKnown   = 2 * discovery.MaxSites // instances that a goodbye is noticed of
	maxAddrs   = 8                      // of one host
)

// finder asks who is there and hears the answers. zeroconf's Browse does not do: it
// passes over goodbyes and whatever changes, and asks in such a way that all sites
// answer each time. This one says whom it knows, and those keep silent.
type finder struct {
	emit  func(discovery.Sighting) error
	known map[string]*known // by label; those whose record was taken
	ask   time.Time         // when the next query is due
	also  bool              // it is the one by IPv6, which follows that by IPv4
	asked time.Time
	pause time.Duration // from that to the next
}

type known struct {
	site    identity.ID
	until   time.Time
	doubted bool // it, or somebody else, has said goodbye
}

// run finds on a link until ctx ends. What was known on another stays known.
func (f *finder) run(ctx context.Context, l *link) error {
	f.ask, f.also, f.pause = time.Now(), false, askLeast
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
			f.hear(l, p)
		case <-wake.C:
		}
		now := time.Now()
		f.leave(now)
		if !now.Before(f.ask) {
			f.query(l, now)
		}
		wake.Reset(time.Until(f.next()))
	}
}

// query asks all, by IPv4 first: who is known after that answers no second time. Sites
// that were switched on together do not ask together for ever.
func (f *finder) query(l *link, now time.Time) {
	group := group4
	if f.also {
		group = group6
	}
	b := f.question(now)
	for on, i := range l.own {
		if i.has(group) {
			l.send(b, on, group)
		}
	}
	if f.also = !f.also; f.also {
		f.ask = now.Add(askAlso)
		return
	}
	f.asked, f.ask = now, now.Add(f.pause+rand.N(f.pause/8))
	f.pause = min(2*f.pause, askMost)
}

// next is when something is due.
func (f *finder) next() time.Time {
	next := f.ask
	for _, k := range f.known {
		if k.doubted && k.until.Before(next) {
			next = k.until
		}
	}
	return next
}

// leave passes on the goodbyes that nobody has denied, and forgets who is not heard of.
// Of the latter whoever took their records knows how long they hold.
func (f *finder) leave(now time.Time) {
	for label, k := range f.known {
		if k.until.After(now) {
			continue
		}
		delete(f.known, label)
		if k.doubted {
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
func wants(b []byte) bool {
	const response = 0x80 // in the third byte
	return len(b) >= 12 && b[2]&response != 0 && bytes.Contains(b, typeLabel)
}

// hear takes in what a packet says of sites.
func (f *finder) hear(l *link, p packet) {
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
			meet(addrs, rr.Hdr, rr.A, "")
		case *dns.AAAA:
			meet(addrs, rr.Hdr, rr.AAAA, l.own[p.on].Name)
		}
	}
	for _, rr := range all {
		switch rr := rr.(type) {
		case *dns.PTR:
			if rr.Hdr.Name == services && rr.Hdr.Ttl == 0 {
				f.doubt(rr.Ptr)
			}
		case *dns.TXT:
			if rr.Hdr.Ttl > 0 && strings.HasSuffix(rr.Hdr.Name, "."+services) {
				at := addrs[targets[rr.Hdr.Name]]
				if from := p.from.Addr(); len(at) == 0 && !from.IsUnspecified() {
					at = []netip.Addr{from}
				}
				f.see(rr, at)
			}
		}
	}
}

// meet notes an address of a host; one of the link alone needs its zone.
func meet(addrs map[string][]netip.Addr, h dns.RR_Header, ip []byte, zone string) {
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
func (f *finder) see(txt *dns.TXT, at []netip.Addr) {
	label := strings.TrimSuffix(txt.Hdr.Name, "."+services)
	site, record, err := recordOf(txt.Txt)
	if err != nil || label != discovery.Label(site) {
		_ = f.emit(malformed)
		return
	}
	holds := min(time.Duration(txt.Hdr.Ttl)*time.Second, ttl)
	if f.emit(discovery.Sighting{Site: site, Record: record, At: at, For: holds}) != nil {
		return
	}
	if f.known[label] != nil || len(f.known) < maxKnown {
		f.known[label] = &known{site: site, until: time.Now().Add(holds)}
	}
}

// doubt asks soon whether somebody has really gone: anybody can say so, and a site whose
// record or address changes says goodbye to the one before. Not at once: who has said
// goodbye and closes down hears for a moment more, and would answer.
func (f *finder) doubt(instance string) {
	k := f.known[strings.TrimSuffix(instance, "."+services)]
	if k == nil || k.doubted {
		return
	}
	now := time.Now()
	k.doubted, k.until = true, now.Add(doubt)
	if now.Sub(f.asked) >= askLeast && !f.also {
		f.ask = now.Add(doubt / 2)
	}
}
