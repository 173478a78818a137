//go:build e2e && linux

package mdns

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	lan "agentsite/discovery/bed"
	"agentsite/node/identity"

	"github.com/miekg/dns"
)

// A bed is a network for a test. A host runs this test binary again, for which TestMain selects one
// of the roles.
type bed struct {
	*lan.Bed
	t *testing.T
}

func newBed(t *testing.T) *bed { return &bed{lan.New(t), t} }

const role = "MDNS_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "announce":
		announceRole(os.Args[1:])
	case "find":
		findRole(os.Args[1:])
	case "flood":
		floodRole()
	case "ask":
		askRole(os.Args[1:])
	default:
		os.Exit(m.Run()) // a test, on a host
	}
}

// process is a role on a host.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string
	label string
}

// start runs a role. It ends when its stdin does, so that none outlives the test.
func (b *bed) start(ns, what string, args ...string) *process {
	b.t.Helper()
	p := &process{t: b.t, lines: make(chan string, 10_000)}
	argv := lan.On(ns, append([]string{os.Args[0]}, args...)...)
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), role+"="+what)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	p.stdin = in
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	b.t.Cleanup(func() { p.end() })
	return p
}

// end lets it end in order.
func (p *process) end() {
	p.stdin.Close()
	for range p.lines {
	}
	_ = p.cmd.Wait()
}

// kill ends it at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.end()
}

// announce runs a site and waits until it begins. It may look for others too, and have
// a key that the test knows.
func (b *bed) announce(ns, name string, how ...string) *process {
	b.t.Helper()
	p := b.start(ns, "announce", append([]string{name}, how...)...)
	select {
	case p.label = <-p.lines:
	case <-time.After(10 * time.Second):
		b.t.Fatal("a site does not start")
	}
	return p
}

// event is a change in the output of the finding role.
type event struct {
	Change  discovery.Change
	Name    string
	Label   string
	At      []netip.Addr
	Reached map[string][]string // where each site answered, by label
	Ignored discovery.Ignored
	Sites   int
}

// await waits for an event, and returns it and how long that took.
func (p *process) await(within time.Duration, what string, is func(event) bool) (event, time.Duration) {
	p.t.Helper()
	start, end := time.Now(), time.After(within)
	for {
		select {
		case line, ok := <-p.lines:
			var e event
			if !ok || json.Unmarshal([]byte(line), &e) != nil {
				p.t.Fatalf("%s: the finder ended, or says %q", what, line)
			}
			if is(e) {
				return e, time.Since(start)
			}
		case <-end:
			p.t.Fatalf("%s: not within %v", what, within)
		}
	}
}

// all waits until so many sites were found.
func (p *process) all(n int, within time.Duration) time.Duration {
	p.t.Helper()
	found := make(map[string]bool)
	_, took := p.await(within, fmt.Sprintf("%d sites", n), func(e event) bool {
		if e.Change == discovery.Appeared {
			found[e.Label] = true
		}
		return len(found) == n
	})
	return took
}

func appeared(label string) func(event) bool {
	return func(e event) bool { return e.Label == label && e.Change == discovery.Appeared }
}

func gone(label string) func(event) bool {
	return func(e event) bool { return e.Label == label && e.Change == discovery.Gone }
}

func reachedAt(label, address string) func(event) bool {
	return func(e event) bool {
		return slices.ContainsFunc(e.Reached[label], func(u string) bool { return strings.Contains(u, address) })
	}
}

// The roles.

func untilStdinEnds() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	return ctx
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return v
}

// newRecord is that of a site that stands at port 8473.
func newRecord(key identity.Key, name string) *discovery.Signed {
	return must(discovery.Record{
		Site: key.ID(), Sequence: 1, Name: name, Lifetime: time.Hour,
		Addresses: []string{"http://" + discovery.HostName(key.ID()) + ":8473/mcp"},
	}.Sign(key))
}

// announceRole is a site: NAME [looks] [KEY]. It says its label, and who connects hears
// that too.
func announceRole(args []string) {
	key, ctx := identity.New(), untilStdinEnds()
	for _, a := range args[1:] {
		if a == "looks" {
			go discovery.NewDirectory(slog.Default(), map[string]discovery.Medium{"mdns": new(Medium)}).Run(ctx)
		} else {
			key = must(identity.ParsePEM([]byte(a)))
		}
	}
	record := newRecord(key, args[0])
	listener := must(net.Listen("tcp", ":8473"))
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, discovery.Label(record.Site))
			c.Close()
		}
	}()
	fmt.Println(discovery.Label(record.Site))
	medium := Medium{Services: []Service{
		{Type: "_wot._tcp", Subtype: "_directory", Text: []string{"td=/.well-known/wot", "type=Directory", "scheme=https"}},
		{Type: "_a2a._tcp", Text: []string{"card=/.well-known/agent-card.json"}},
	}}
	must(0, medium.Announce(ctx, record))
}

// findRole looks for sites, of which one may be known: [PEERID]. It says what changes,
// and four times a second at which of their addresses the first sites answer.
func findRole(pinned []string) {
	ctx := untilStdinEnds()
	d := discovery.NewDirectory(slog.Default(), map[string]discovery.Medium{"mdns": new(Medium)})
	for _, id := range pinned {
		d.Pin(must(identity.Parse(id)))
	}
	go d.Run(ctx)
	say, every := make(chan event), time.NewTicker(250*time.Millisecond)
	go d.Watch(ctx, func(c discovery.Change, s discovery.Site) {
		say <- event{Change: c, Name: s.Name, Label: discovery.Label(s.Site), At: s.At}
	})
	for {
		var e event
		select {
		case <-ctx.Done():
			return
		case e = <-say:
		case <-every.C:
			sites := d.Sites()
			e = event{Reached: make(map[string][]string), Ignored: d.Ignored(), Sites: len(sites)}
			for _, s := range sites[:min(len(sites), 4)] {
				label := discovery.Label(s.Site)
				e.Reached[label] = reached(&s, label)
			}
		}
		fmt.Println(string(must(json.Marshal(e))))
	}
}

// floodRole makes up 10,000 sites, and says what is no DNS, and what is no record.
func floodRole() {
	l := must(listen(must(interfaces()), func([]byte) bool { return false }))
	for n := range 10_000 {
		key := identity.New()
		r := newRecord(key, "greenhouse")
		port, text, _ := serviceOf(r)
		label, host := discovery.Label(r.Site)+"."+services, discovery.HostName(r.Site)+"."
		h := func(name string, rrtype uint16) dns.RR_Header {
			return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: 4500}
		}
		switch n % 4 {
		case 1:
			text[3] = text[3][:100] // cut
		case 2:
			text[len(text)-1] = text[len(text)-1][:len(text[len(text)-1])-2] + "AA" // forged
		}
		m := pack(response([]dns.RR{
			&dns.PTR{Hdr: h(services, dns.TypePTR), Ptr: label},
			&dns.SRV{Hdr: h(label, dns.TypeSRV), Port: uint16(port), Target: host},
			&dns.TXT{Hdr: h(label, dns.TypeTXT), Txt: text},
			&dns.A{Hdr: h(host, dns.TypeA), A: net.IPv4(10, 77, byte(n>>8), byte(n))},
		}))
		if n%4 == 3 {
			m = m[:len(m)*2/3]
		}
		for on := range l.own {
			l.multicast(m, on)
		}
		time.Sleep(200 * time.Microsecond) // else most are lost on the way
	}
	fmt.Println("flooded")
	<-untilStdinEnds().Done()
}

// askRole asks in plain DNS: FROM TO NAME TYPE. It says how many bytes come back in a
// second, and what.
func askRole(args []string) {
	c := must(net.DialUDP("udp", must(net.ResolveUDPAddr("udp", args[0])), must(net.ResolveUDPAddr("udp", args[1]))))
	q := new(dns.Msg)
	q.Question = []dns.Question{{Name: args[2], Qtype: dns.StringToType[args[3]], Qclass: dns.ClassINET | cacheFlush}}
	must(c.Write(pack(q)))
	must(0, c.SetReadDeadline(time.Now().Add(time.Second)))
	b := make([]byte, maxPacket)
	n, _ := c.Read(b)
	var m dns.Msg
	_ = m.Unpack(b[:n])
	fmt.Println(n, m.Answer)
}

// reached are the URLs at which the site itself answers.
func reached(s *discovery.Site, label string) (urls []string) {
	for _, text := range s.URLs() {
		u := must(url.Parse(text))
		c, err := net.DialTimeout("tcp", u.Host, 100*time.Millisecond)
		if err != nil {
			continue
		}
		b, _ := io.ReadAll(c)
		c.Close()
		if string(b) == label {
			urls = append(urls, text)
		}
	}
	return urls
}
