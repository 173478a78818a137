package outbound

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestRebinding: a name whose address was public when somebody looked, and is not when it is dialled, is refused: the
// address that is checked is the one that is dialled.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	listens, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: listens, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg)
		m.SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			ip := net.IPv4(5, 6, 7, 8)
			if asked.Add(1) > 1 {
				ip = net.IPv4(10, 0, 0, 1)
			}
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Class: dns.ClassINET, Rrtype: dns.TypeA}, A: ip})
		}
		_ = w.WriteMsg(m)
	})}
	served := make(chan error)
	go func() { served <- server.ActivateAndServe() }()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", listens.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Shutdown()
		<-served
	})
	const name = "rebinds.example.org"
	at, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip4", name)
	if err != nil || check(at[0], nil) != nil {
		t.Fatal(at, err)
	}
	if _, err := Get(t.Context(), Client(time.Minute), "https://"+name+"/client.json", 100); !errors.Is(err, ErrPrivate) {
		t.Error(err)
	}
}
