package lan

import (
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/miekg/dns"
)

const (
	maxHosts     = 64 // of one query
	maxAddrs     = 8  // of one host
	maxInstances = 64 // of one service
	maxText      = 32 // strings of one TXT record
	maxQuestions = 16 // in one packet
)

// question asks for the records of one type. Names are as package dns writes them, with escapes, in small letters.
type question struct {
	name string // with a dot at its end
	kind uint16
}

func addressQuestions(name string) []question {
	return []question{{name, dns.TypeA}, {name, dns.TypeAAAA}}
}

// pack encodes a query; nil without questions.
func pack(id uint16, questions []question) []byte {
	var m dns.Msg
	m.Id, m.Compress = id, true
	for _, q := range questions[:min(len(questions), maxQuestions)] {
		m.Question = append(m.Question, dns.Question{Name: q.name, Qtype: q.kind, Qclass: dns.ClassINET})
	}
	if len(m.Question) == 0 {
		return nil
	}
	b, err := m.Pack()
	if err != nil {
		return nil
	}
	return b
}

// answers holds the answers, by name.
type answers struct {
	addrs   map[string][]netip.Addr
	pointed []string // what PTR records point to, as it was written
	service map[string]*dns.SRV
	text    map[string][]string
	ttl     time.Duration // the shortest of an address
}

func newAnswers() *answers {
	return &answers{addrs: make(map[string][]netip.Addr), service: make(map[string]*dns.SRV), text: make(map[string][]string), ttl: maxCached}
}

// add takes from a packet the answers to the questions, and what belongs to these: the records of an instance that a
// PTR record points to, and the addresses of its host.
func (a *answers) add(p packet, questions []question) {
	var m dns.Msg
	if m.Unpack(p.bytes) != nil {
		return
	}
	all := slices.Concat(m.Answer, m.Extra)
	asked := func(h *dns.RR_Header, name string) bool { return slices.Contains(questions, question{name, h.Rrtype}) }
	for _, rr := range all { // PTR first, then SRV and TXT of these, then the addresses
		ptr, ok := rr.(*dns.PTR)
		if !ok || ptr.Hdr.Ttl == 0 || len(a.pointed) == maxInstances {
			continue
		}
		service := strings.ToLower(ptr.Hdr.Name)
		if asked(&ptr.Hdr, service) && strings.HasSuffix(strings.ToLower(ptr.Ptr), "."+service) && !slices.ContainsFunc(a.pointed,
			func(other string) bool { return strings.EqualFold(other, ptr.Ptr) }) {
			a.pointed = append(a.pointed, ptr.Ptr)
		}
	}
	instance := func(name string) bool {
		return slices.ContainsFunc(a.pointed, func(other string) bool { return strings.ToLower(other) == name })
	}
	for _, rr := range all {
		h := rr.Header()
		name := strings.ToLower(h.Name)
		if h.Ttl == 0 || !instance(name) {
			continue
		}
		switch rr := rr.(type) {
		case *dns.SRV:
			if rr.Port != 0 && isHost(rr.Target) && isLocal(rr.Target) {
				a.service[name] = rr
			}
		case *dns.TXT:
			a.text[name] = rr.Txt
		}
	}
	host := func(name string) bool {
		for _, srv := range a.service {
			if strings.EqualFold(srv.Target, name) {
				return true
			}
		}
		return false
	}
	for _, rr := range all {
		h := rr.Header()
		name := strings.ToLower(h.Name)
		if h.Ttl == 0 || !asked(h, name) && !host(name) {
			continue
		}
		switch rr := rr.(type) {
		case *dns.A:
			a.addAddr(p.on, name, h.Ttl, rr.A)
		case *dns.AAAA:
			a.addAddr(p.on, name, h.Ttl, rr.AAAA)
		}
	}
}

// addAddr adds an address of a host, with its zone if it is link-local. It ignores public addresses of other networks
// and loopback addresses: else a neighbour would have us connect to anybody.
func (a *answers) addAddr(on iface, host string, ttl uint32, ip []byte) {
	addr, ok := netip.AddrFromSlice(ip)
	addr = addr.Unmap()
	if !ok || !addr.IsPrivate() && !on.contains(addr) {
		return
	}
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		addr = addr.WithZone(on.Name)
	}
	_, known := a.addrs[host]
	if slices.Contains(a.addrs[host], addr) || len(a.addrs[host]) == maxAddrs || !known && len(a.addrs) == maxHosts {
		return
	}
	a.addrs[host] = append(a.addrs[host], addr)
	a.ttl = min(a.ttl, time.Duration(ttl)*time.Second)
}

// unescape reverses how dns writes bytes of names and texts: \DDD, or \ before a letter.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case i+3 < len(s) && isDigit(s[i+1]) && isDigit(s[i+2]) && isDigit(s[i+3]):
			b.WriteByte((s[i+1]-'0')*100 + (s[i+2]-'0')*10 + s[i+3] - '0')
			i += 3
		default:
			i++
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// printable reports whether a text of the network can be shown: valid UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
