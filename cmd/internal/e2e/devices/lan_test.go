//go:build e2e && linux

package devices

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/device/lan"
	"agentsite/discovery/bed"

	"github.com/miekg/dns"
)

const lanRole = "LAN_ROLE"

// TestLANRole is not a test: it is what a host of TestLANNames does, which runs this binary again.
func TestLANRole(t *testing.T) {
	what, argument, _ := strings.Cut(os.Getenv(lanRole), " ")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	answer := func(v any, err error) {
		b, _ := json.Marshal(map[string]any{"is": v, "failed": err != nil})
		fmt.Printf("\nanswer %s\n", b)
	}
	switch what {
	case "":
		return // it is not run as a host
	case "lookup":
		ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		answer(lan.Lookup(ctx, argument))
	case "browse":
		answer(lan.Browse(ctx, argument))
	case "dial":
		c, err := lan.Dial(ctx, argument)
		if err != nil {
			answer(nil, err)
			return
		}
		defer c.Close()
		word, err := bufio.NewReader(c).ReadString('\n')
		answer(strings.TrimSpace(word), err)
	case "listen":
		l, err := net.Listen("tcp", argument)
		if err != nil {
			t.Fatal(err)
		}
		answer("ready", nil)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "the kitchen")
			c.Close()
		}
	case "pose": // as a host with another address, and with addresses that no neighbour may send anybody to
		name, address, _ := strings.Cut(argument, " ")
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.ListenMulticastUDP("udp4", eth0, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353})
		if err != nil {
			t.Fatal(err)
		}
		answer("ready", nil)
		for b := make([]byte, 9000); ; {
			n, from, err := c.ReadFromUDP(b)
			if err != nil {
				return
			}
			var q dns.Msg
			if q.Unpack(b[:n]) != nil || q.Response || len(q.Question) == 0 || q.Question[0].Name != name+"." {
				continue
			}
			var m dns.Msg
			m.SetReply(&q)
			for _, a := range []string{address, "127.0.0.1", "203.0.113.9"} {
				m.Answer = append(m.Answer,
					&dns.A{Hdr: dns.RR_Header{Name: name + ".", Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 10}, A: net.ParseIP(a)})
			}
			b, _ := m.Pack()
			_, _ = c.WriteToUDP(b, from)
		}
	}
}

// on runs a role on a host and returns the first answer. The role ends with the test.
func on(t *testing.T, host, role string) (is json.RawMessage, failed bool) {
	t.Helper()
	argv := bed.On(host, os.Args[0], "-test.run=^TestLANRole$", "-test.v")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), lanRole+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "answer "); ok {
			var a struct {
				Is     json.RawMessage
				Failed bool
			}
			if err := json.Unmarshal([]byte(text), &a); err != nil {
				t.Fatal(err)
			}
			return a.Is, a.Failed
		}
	}
	t.Fatalf("%s: the host says nothing", role)
	return nil, false
}

func decode[T any](t *testing.T, b json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

// TestLANNames: names and services of Debian's avahi are found, by IPv4 and IPv6, on each interface, and a device is
// reached although another host claims its name.
func TestLANNames(t *testing.T) {
	b := bed.New(t)
	kitchen := b.Host("10.77.0.50/24 fd77::50/64")
	a := b.Avahi(kitchen, "kitchen")
	a.Begin(`avahi-publish -s "Living Room" _esphomelib._tcp 6053 mac=aabbcc version=2026.11.0`)
	here := b.Host("10.99.0.1/24", "10.77.0.100/24 fd77::100/64") // eth0 reaches nobody by that network
	a.Until("6053", "avahi-browse -r -p -t _esphomelib._tcp | grep ^=")

	found, failed := on(t, here, "lookup kitchen.local")
	addrs := decode[[]netip.Addr](t, found)
	for _, want := range []string{"10.77.0.50", "fd77::50"} {
		if !slices.Contains(addrs, netip.MustParseAddr(want)) {
			t.Errorf("kitchen.local has %v, not %s", addrs, want)
		}
	}
	if failed {
		t.Error("the lookup failed")
	}
	if _, failed := on(t, here, "lookup nobody.local"); !failed {
		t.Error("nobody.local is found")
	}

	found, _ = on(t, here, "browse _esphomelib._tcp")
	all := decode[[]lan.Instance](t, found)
	if len(all) != 1 || all[0].Name != "Living Room" || all[0].Host != "kitchen.local" || all[0].Port != 6053 ||
		all[0].Text["mac"] != "aabbcc" || !slices.Contains(all[0].Addresses, netip.MustParseAddr("10.77.0.50")) {
		t.Errorf("%+v", all)
	}
	if found, failed = on(t, here, "browse _nothing._tcp"); failed || len(decode[[]lan.Instance](t, found)) != 0 {
		t.Errorf("%s", found)
	}

	on(t, kitchen, "listen :7777")
	if word, failed := on(t, here, "dial kitchen.local:7777"); failed || decode[string](t, word) != "the kitchen" {
		t.Errorf("dial: %s", word)
	}
	if _, failed := on(t, here, "dial kitchen.local:7778"); !failed {
		t.Error("a port without a listener is reached")
	}
	on(t, here, "listen 127.0.0.1:7777") // nobody may be sent here
	on(t, b.Host("10.77.0.66/24"), "pose kitchen.local 10.77.0.66")
	found, _ = on(t, here, "lookup kitchen.local")
	addrs = decode[[]netip.Addr](t, found)
	if !slices.Contains(addrs, netip.MustParseAddr("10.77.0.66")) || !slices.Contains(addrs, netip.MustParseAddr("10.77.0.50")) {
		t.Errorf("two hosts have the name, and it has %v", addrs)
	}
	for _, a := range addrs {
		if a.IsLoopback() || a == netip.MustParseAddr("203.0.113.9") {
			t.Errorf("a neighbour sends us to %v", a)
		}
	}
	if word, failed := on(t, here, "dial kitchen.local:7777"); failed || decode[string](t, word) != "the kitchen" {
		t.Errorf("dial of two: %s", word)
	}
}
