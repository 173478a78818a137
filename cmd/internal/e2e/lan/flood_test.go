//go:build e2e

package lan

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/discovery/mdns"
	"agentsite/node/identity"

	"github.com/miekg/dns"
)

// flood is a hostile neighbour: FROM VICTIM. It hears the victim's record and then makes
// up 10,000 sites. In between it repeats that record with addresses of its own, and says
// goodbye in the victim's name.
func flood(from, victim string) error {
	id, err := identity.Parse(victim)
	if err != nil {
		return err
	}
	var record []byte
	hearing, heard := context.WithTimeout(context.Background(), 10*time.Second)
	err = new(mdns.Medium).Find(hearing, func(s discovery.Sighting) error {
		if s.Site == id && s.Record != nil {
			record = s.Record
			heard()
		}
		return nil
	})
	if err != nil || record == nil {
		return fmt.Errorf("the victim is not heard: %v", err)
	}
	group := &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}
	c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, group)
	if err != nil {
		return err
	}
	defer c.Close()
	for n := range 10_000 {
		elsewhere := net.IPv4(10, 77, 128+byte(n>>8), byte(n))
		key := identity.New()
		r := discovery.Record{
			Site: key.ID(), Sequence: 1, Name: "shed", Lifetime: time.Hour,
			Addresses: []string{"https://" + discovery.HostName(key.ID()) + ":8474/mcp"},
		}
		signed, err := r.Sign(key)
		if err != nil {
			return err
		}
		all := [][]byte{instance(key.ID(), signed.Short(), elsewhere, 120)}
		if n%2 == 0 {
			all = append(all, instance(id, record, elsewhere, 120))
		}
		if n%100 == 0 {
			all = append(all, instance(id, record, elsewhere, 0))
		}
		for _, b := range all {
			if _, err := c.Write(b); err != nil {
				return err
			}
		}
		time.Sleep(200 * time.Microsecond) // else most are lost on the way
	}
	return nil
}

// instance is a packet that announces a site at an address.
func instance(site identity.ID, record []byte, at net.IP, ttl uint32) []byte {
	const services = "_agentsite._tcp.local."
	label, host := discovery.Label(site)+"."+services, discovery.HostName(site)+"."
	text := []string{"id=" + site.PeerID(), "path=/mcp", "name=shed"}
	i := 0
	for part := range slices.Chunk([]byte(base64.RawURLEncoding.EncodeToString(record)), 250) {
		text = append(text, fmt.Sprintf("r%d=%s", i, part))
		i++
	}
	h := func(name string, rrtype uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
	}
	m := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true, Answer: []dns.RR{
		&dns.PTR{Hdr: h(services, dns.TypePTR), Ptr: label},
		&dns.SRV{Hdr: h(label, dns.TypeSRV), Port: 8474, Target: host},
		&dns.TXT{Hdr: h(label, dns.TypeTXT), Txt: text},
		&dns.A{Hdr: h(host, dns.TypeA), A: at},
	}}
	b, err := m.Pack()
	if err != nil {
		panic(err) // it is made of names that fit
	}
	return b
}

// neighbour is what runs on another host, where NEIGHBOUR says so.
func neighbour() {
	if err := flood(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestMain runs this test program as a hostile neighbour where NEIGHBOUR is set.
func TestMain(m *testing.M) {
	if os.Getenv("NEIGHBOUR") != "" {
		neighbour()
	}
	os.Exit(m.Run())
}
