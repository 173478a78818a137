package mdns

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	probes         = 3 // RFC 6762, section 8.1
	probeInterval  = 250 * time.Millisecond
	answerInterval = time.Second      // multicast, the same on one interface: section 6
	nameRetry      = 10 * time.Minute // for a name that another host has
	legacyTTL      = 10 * time.Second // section 6.7

	cacheFlush = 1 << 15 // in a class: forget earlier records
)

// nameResponder answers for the host's names and for subtypes of services, which zeroconf does not.
// keyName derives from the site's key and is unique. siteName is answered for once probes have
// found no other owner, until another host claims it.
type nameResponder struct {
	*link
	keyName, siteName string
	subtypes          []subtype

	probed int       // number of probes; more than probes once the name is held
	due    time.Time // of the next step; zero for none
	last   map[answerKey]time.Time
}

// subtype is a name by which a service is found besides its type (RFC 6763, section 7.1). zeroconf
// announces it, and its goodbye, but answers no queries for it.
type subtype struct{ name, instance string }

// answerKey identifies a multicast answer.
type answerKey struct {
	name  string
	on    int
	group netip.AddrPort
}

func (n *nameResponder) isHeld() bool { return n.probed > probes }

// run answers until ctx ends or the link fails.
func (n *nameResponder) run(ctx context.Context) error {
	n.last = make(map[answerKey]time.Time)
	n.due = time.Now().Add(rand.N(probeInterval))
	wake := time.NewTimer(time.Until(n.due))
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			n.announce(n.keyName, 0)
			if n.isHeld() {
				n.announce(n.siteName, 0)
			}
			return nil
		case err := <-n.failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case p := <-n.packets:
			n.handle(p)
		case <-wake.C:
			n.advance()
		}
		wake.Stop()
		if !n.due.IsZero() {
			wake.Reset(time.Until(n.due))
		}
	}
}

// advance takes the next step towards holding siteName.
func (n *nameResponder) advance() {
	now := time.Now()
	switch {
	case n.probed < probes:
		n.probe()
		n.probed++
		n.due = now.Add(probeInterval)
	case !n.isHeld():
		n.probed++
		n.announce(n.siteName, ttl)
		n.due = now.Add(time.Second)
	default: // once more: the first may be lost
		n.announce(n.siteName, ttl)
		n.due = time.Time{}
	}
}

// probe asks whether another host has siteName, and claims it.
func (n *nameResponder) probe() {
	for on := range n.own {
		var q dns.Msg
		q.Question = []dns.Question{{Name: n.siteName, Qtype: dns.TypeANY, Qclass: dns.ClassINET}}
		q.Ns = n.addresses(n.siteName, on, dns.TypeANY, dns.ClassINET, ttl)
		n.multicast(pack(&q), on)
	}
}

// announce sends a name's addresses on each interface, with a TTL.
func (n *nameResponder) announce(name string, ttl time.Duration) {
	for on := range n.own {
		n.multicast(pack(response(n.addresses(name, on, dns.TypeANY, dns.ClassINET|cacheFlush, ttl))), on)
	}
}

func response(answer []dns.RR) *dns.Msg {
	m := &dns.Msg{Answer: answer}
	m.Response, m.Authoritative = true, true
	return m
}

// addresses returns a name's records on an interface, like zeroconf's.
func (n *nameResponder) addresses(name string, on int, qtype, class uint16, ttl time.Duration) (list []dns.RR) {
	h := dns.RR_Header{Name: name, Class: class, Ttl: uint32(ttl.Seconds())}
	for _, a := range n.own[on].reachable() {
		if a.Is4() && qtype != dns.TypeAAAA {
			h.Rrtype = dns.TypeA
			list = append(list, &dns.A{Hdr: h, A: a.AsSlice()})
		} else if a.Is6() && qtype != dns.TypeA {
			h.Rrtype = dns.TypeAAAA
			list = append(list, &dns.AAAA{Hdr: h, AAAA: a.AsSlice()})
		}
	}
	return list
}

// mentionsName reports whether a packet may be about the names.
func (n *nameResponder) mentionsName(b []byte) bool {
	b = bytes.ToLower(b) // of which lengths and numbers suffer, and letters do not
	label := func(name string) []byte { return []byte(strings.TrimSuffix(name, ".local.")) }
	return bytes.Contains(b, label(n.keyName)) || bytes.Contains(b, label(n.siteName)) || len(n.subtypes) > 0 && bytes.Contains(b, []byte("_sub"))
}

// handle answers queries, and detects other owners of siteName.
func (n *nameResponder) handle(p packet) {
	var m dns.Msg
	if m.Unpack(p.bytes) != nil {
		return
	}
	if !m.Response {
		if !n.isHeld() && n.isTakenByOther(m.Ns) { // both begin anew, by chance not at once
			n.probed, n.due = 0, time.Now().Add(time.Second+rand.N(time.Second))
		}
		n.answer(p, &m)
		return
	}
	if all := slices.Concat(m.Answer, m.Ns, m.Extra); n.isHeld() && n.isTakenByOther(all) || !n.isHeld() && n.isTaken(all) {
		n.probed, n.due = 0, time.Now().Add(nameRetry)
	}
}

// isTaken reports whether records have an address of siteName, be it this host's: then
// another program answers for it.
func (n *nameResponder) isTaken(list []dns.RR) bool {
	return slices.ContainsFunc(list, func(rr dns.RR) bool { return n.isSiteNameAddress(rr) })
}

// isTakenByOther reports whether records have another host's address of siteName.
func (n *nameResponder) isTakenByOther(list []dns.RR) bool {
	return slices.ContainsFunc(list, func(rr dns.RR) bool { return n.isSiteNameAddress(rr) && !n.isOwnAddress(rr) })
}

// isSiteNameAddress reports whether a record is an address of siteName.
func (n *nameResponder) isSiteNameAddress(rr dns.RR) bool {
	h := rr.Header()
	return h.Ttl > 0 && (h.Rrtype == dns.TypeA || h.Rrtype == dns.TypeAAAA) && strings.EqualFold(h.Name, n.siteName)
}

func (n *nameResponder) isOwnAddress(rr dns.RR) bool {
	var ip []byte
	switch rr := rr.(type) {
	case *dns.A:
		ip = rr.A
	case *dns.AAAA:
		ip = rr.AAAA
	}
	a, _ := netip.AddrFromSlice(ip)
	for _, i := range n.own {
		if slices.ContainsFunc(i.nets, func(p netip.Prefix) bool { return p.Addr() == a.Unmap() }) {
			return true
		}
	}
	return false
}

// answer answers a query, by multicast or unicast.
func (n *nameResponder) answer(p packet, q *dns.Msg) {
	legacy := p.from.Port() != group4.Port() // of a program that knows plain DNS only
	class, lasts := uint16(dns.ClassINET|cacheFlush), ttl
	if legacy {
		class, lasts = dns.ClassINET, legacyTTL
	}
	group := group6
	if p.from.Addr().Is4() {
		group = group4
	}
	now, alone := time.Now(), true // alone: a unicast answer was requested
	due := func(name string, asked dns.Question) bool {
		if legacy || asked.Qclass&cacheFlush != 0 { // the bit has another meaning there
			return true
		}
		alone = false
		this := answerKey{name, p.on, group}
		if now.Sub(n.last[this]) < answerInterval && len(q.Ns) == 0 { // probes cannot wait
			return false
		}
		n.last[this] = now
		return true
	}
	var list []dns.RR
	for _, name := range []string{n.keyName, n.siteName} {
		i := slices.IndexFunc(q.Question, func(q dns.Question) bool { return strings.EqualFold(q.Name, name) && isAddressType(q.Qtype) })
		if i < 0 || name == n.siteName && !n.isHeld() {
			continue
		}
		qtype := q.Question[i].Qtype
		if slices.ContainsFunc(q.Question[i+1:], func(q dns.Question) bool { return strings.EqualFold(q.Name, name) && q.Qtype != qtype }) {
			qtype = dns.TypeANY // A and AAAA, mostly
		}
		if due(name, q.Question[i]) {
			list = append(list, n.addresses(name, p.on, qtype, class, lasts)...)
		}
	}
	for _, s := range n.subtypes {
		i := slices.IndexFunc(q.Question, func(q dns.Question) bool {
			return strings.EqualFold(q.Name, s.name) && (q.Qtype == dns.TypePTR || q.Qtype == dns.TypeANY)
		})
		if i >= 0 && !s.known(q.Answer) && due(s.name, q.Question[i]) {
			// Other sites have the name, too: nobody forgets theirs.
			h := dns.RR_Header{Name: s.name, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: uint32(lasts.Seconds())}
			list = append(list, &dns.PTR{Hdr: h, Ptr: s.instance})
		}
	}
	if len(list) == 0 {
		return
	}
	m := response(list)
	if legacy {
		m.Id, m.Question = q.Id, q.Question[:1]
	}
	if alone {
		group = p.from
	}
	n.send(pack(m), p.on, group)
}

// known reports whether the sender of a query has the answer for half of its time (RFC 6762, section
// 7.1).
func (s subtype) known(answers []dns.RR) bool {
	return slices.ContainsFunc(answers, func(rr dns.RR) bool {
		ptr, ok := rr.(*dns.PTR)
		return ok && strings.EqualFold(ptr.Hdr.Name, s.name) && strings.EqualFold(ptr.Ptr, s.instance) && ptr.Hdr.Ttl >= uint32(ttl.Seconds()/2)
	})
}

func isAddressType(qtype uint16) bool {
	return qtype == dns.TypeA || qtype == dns.TypeAAAA || qtype == dns.TypeANY
}
