//go:build e2e && linux

package public

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

// hostile are the parameters of a peer that attacks a site: as its relay, or as a site of the same relay.
type hostile struct {
	Key    string // PEM
	Relay  string // the address of the relay; "" where it is one itself
	Victim peer.ID
	Name   string   // the victim's
	Ask    []string // names that it asks the relay for
}

// The protocols of package public.
const (
	nameProtocol protocol.ID = "/agentsite/name/1"
	tlsProtocol  protocol.ID = "/agentsite/tls/1"
)

// beHostile prints a line for each result, and goes on until its input ends. A flood begins with a line of it.
func beHostile(parameters string) {
	var a hostile
	if err := json.Unmarshal([]byte(parameters), &a); err != nil {
		panic(err)
	}
	key, err := identity.ParsePEM([]byte(a.Key))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	begin := make(chan struct{}, 1)
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			begin <- struct{}{}
		}
		cancel()
	}()
	o := p2p.Options{Key: key}
	if a.Relay == "" {
		o.Relay, o.Listen = &p2p.Relay{}, p2p.ListenAll(8475)
	}
	h, err := p2p.New(o)
	if err != nil {
		panic(err)
	}
	if a.Relay == "" {
		a.flood(ctx, h, begin)
	} else {
		a.neighbour(ctx, h)
	}
	<-ctx.Done()
	os.Exit(0)
}

// passOn opens a stream as a relay does, with the address of a caller and what it says.
func passOn(ctx context.Context, to network.Conn, from, says string) (network.Stream, error) {
	s, err := to.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, word := range []string{"/multistream/1.0.0\n", string(tlsProtocol) + "\n", from} {
		all = append(append(all, byte(len(word))), word...)
	}
	if _, err = s.Write(append(all, says...)); err != nil {
		s.Reset()
	}
	return s, err
}

// answerOf returns what a peer answers behind the words of the protocol's choice, for a time.
func answerOf(s network.Stream, most time.Duration) []byte {
	s.SetReadDeadline(time.Now().Add(most))
	b, _ := io.ReadAll(io.LimitReader(s, 8<<10))
	return b[min(len(b), len("/multistream/1.0.0\n")+len(tlsProtocol)+3):]
}

// helloOf returns the ClientHello for a name.
func helloOf(name string) string {
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	b := make([]byte, 4<<10)
	n, _ := far.Read(b)
	far.Close()
	return string(b[:n])
}

// flood opens streams of all kinds to a site whose relay it is, many at a time, and prints how many there were.
func (a hostile) flood(ctx context.Context, h host.Host, begin <-chan struct{}) {
	h.SetStreamHandler(nameProtocol, func(s network.Stream) { s.Reset() })
	fmt.Println("listens")
	<-begin
	conns := h.Network().ConnsToPeer(a.Victim)
	fmt.Println(len(conns))
	if len(conns) == 0 {
		return
	}
	says := []string{
		"", "\x16", helloOf("other.example.org"), helloOf(""), helloOf(a.Name)[:40],
		"GET /mcp HTTP/1.1\r\nHost: " + a.Name + "\r\n\r\n",
		strings.Repeat("x", 4<<10), "\x16\x03\x01\xff\xff" + strings.Repeat("\x00", 20<<10),
	}
	froms := []string{"127.0.0.1:1", "192.168.1.2:2", "[::1]:3", "[fe80::1%\n]:4", "what", strings.Repeat("1", 200), "5.5.5.5:5"}
	var count, wrong, alerts atomic.Int64
	var all sync.WaitGroup
	for worker := range 128 {
		all.Go(func() {
			for n := worker; ctx.Err() == nil; n++ {
				opening, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				s, err := passOn(opening, conns[0], froms[n%len(froms)], says[n%len(says)])
				cancel()
				if err == nil {
					most := 100 * time.Millisecond
					if worker < 32 { // those hang for as long as the site has them
						most = time.Minute
					}
					switch got := answerOf(s, most); {
					case len(got) > 0 && got[0] == 21: // an alert of TLS
						alerts.Add(1)
					case len(got) > 0 && got[0] == 22: // a handshake
						wrong.Add(1)
					}
					s.Reset()
				}
				if count.Add(1) == 10_000 {
					fmt.Println(wrong.Load(), alerts.Load())
				}
			}
		})
	}
	all.Wait()
}

// neighbour tries to reach another site of the relay, and prints what succeeded.
func (a hostile) neighbour(ctx context.Context, h host.Host) {
	at, err := peer.AddrInfoFromString(a.Relay)
	if err == nil {
		err = h.Connect(ctx, *at)
	}
	if err != nil {
		panic(err)
	}
	for _, own := range a.Ask {
		s, err := h.NewStream(ctx, at.ID, nameProtocol)
		if err == nil {
			_, err = io.WriteString(s, own)
		}
		if err != nil {
			panic(err)
		}
		s.CloseWrite()
		text, _ := io.ReadAll(s)
		fmt.Printf("%s\n", bytes.TrimSpace(text))
	}
	h.SetStreamHandler(tlsProtocol, func(s network.Stream) { // its callers have their bytes back when they end, and wait until then
		if b, err := io.ReadAll(s); err == nil && len(b) > 0 && len(b) > int(b[0]) {
			_, _ = s.Write(b[1+int(b[0]):])
		}
		s.Close()
	})
	through := peer.AddrInfo{ID: a.Victim, Addrs: []ma.Multiaddr{ma.StringCast(a.Relay + "/p2p-circuit")}}
	reached := func(what string, s network.Stream, err error) {
		if err == nil {
			_, err = io.WriteString(s, "\x0b127.0.0.1:1"+helloOf(a.Name))
		}
		if err == nil {
			s.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, err = s.Read(make([]byte, 1))
		}
		fmt.Printf("%s: %v\n", what, err == nil)
	}
	s, err := h.NewStream(ctx, at.ID, tlsProtocol) // for the relay to pass on
	reached("relay", s, err)
	err = h.Connect(network.WithAllowLimitedConn(ctx, "test"), through)
	fmt.Println("circuit:", err == nil)
	if err == nil {
		s, err = h.NewStream(network.WithAllowLimitedConn(ctx, "test"), a.Victim, tlsProtocol)
	}
	reached("site", s, err)
	fmt.Println("asks")
	for ctx.Err() == nil { // and asks for names without an end
		if s, err := h.NewStream(ctx, at.ID, nameProtocol); err == nil {
			_, _ = io.WriteString(s, a.Name)
			s.CloseWrite()
			_, _ = io.Copy(io.Discard, s)
		}
	}
}

// attacks runs a hostile peer on a host until the test ends. next returns its next line, and begin sends it one.
func (w *world) attacks(on string, a hostile) (next func() string, begin func()) {
	w.t.Helper()
	parameters, err := json.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	next, in, _ := w.converses(on, "hostile", string(parameters))
	return next, func() { _, _ = io.WriteString(in, "\n") }
}

// answered: a stranger is answered under a name within a time.
func (w *world) answered(t *testing.T, most time.Duration, from, root, name string) {
	t.Helper()
	harness.CheckOrdinaryDeadline(t, most, func() time.Duration {
		begun := time.Now()
		if a, err := w.curl(from, root, "-X", "POST", "https://"+name+"/mcp"); err != nil || a.code != "401" {
			t.Errorf("%s: %v %+v", name, err, a)
		}
		return time.Since(begun)
	})
}

// lanClient returns a function that has the site's tool called by its token, on the site's machine, by one connection.
func (w *world) lanClient(s *site) (call func(tool, args string) error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialFrom(ctx, s.on, network, address)
	}}
	w.t.Cleanup(transport.CloseIdleConnections)
	c := http.Client{Transport: transport, Timeout: 20 * time.Second}
	return func(tool, args string) error {
		res, err := c.Do(s.NewToolCall(w.t, s.URL+"/mcp", s.Token, tool, args))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err == nil && (res.StatusCode != 200 || bytes.Contains(text, []byte(`"isError":true`))) {
			err = fmt.Errorf("%s: %s", res.Status, text)
		}
		return err
	}
}

// TestHostileRelayFloods: one of a site's relays opens ten thousand streams, many at a time, that hang, are garbage, name
// other sites, are no TLS, or say that their caller is on the site's machine. None is answered but by an alert. Callers
// of the other relay and of the site's machine are served meanwhile, and stops above all; the site stays small.
func TestHostileRelayFloods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.newSite(w.home())
	w.permit(s.key.ID())
	good := w.relay(zone)
	key, name := identity.New(), s.label(t)+"."+zone
	victim, err := peer.Decode(s.key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	on, ip := w.Public()
	next, begin := w.attacks(on, hostile{Key: string(key.PEM()), Victim: victim, Name: name})
	next()
	w.run(s, "on", append(good.Addresses[:1:1], "/ip4/"+ip+"/udp/8475/quic-v1/p2p/"+key.ID().PeerID()))
	s.certified(t, name)
	stranger := w.stranger()
	root := w.root()
	call := w.lanClient(s)
	if err := call("read_points", `{"points":["lamp/relay"]}`); err != nil {
		t.Fatal(err)
	}
	begin()
	if n := next(); n == "0" {
		t.Fatal("the site is not connected to its relay")
	}
	calls := func(tool, args string, n int) func() time.Duration {
		return func() (longest time.Duration) {
			for range n {
				begun := time.Now()
				if err := call(tool, args); err != nil {
					t.Error(err)
				}
				longest = max(longest, time.Since(begun))
			}
			return longest
		}
	}
	reads := harness.CheckOrdinaryDeadline(t, time.Second, calls("read_points", `{"points":["lamp/relay"]}`, 200))
	w.answered(t, 2*time.Second, stranger, root, name)
	stops := harness.CheckOrdinaryDeadline(t, time.Second, calls("emergency_stop", `{}`, 20))
	if out, err := s.CLI(t, "stop"); err != nil {
		t.Errorf("%s %v", out, err)
	}
	var wrong, alerts int
	if _, err := fmt.Sscan(next(), &wrong, &alerts); err != nil || wrong > 0 || alerts < 20 {
		t.Errorf("of its streams, %d were answered and %d refused by TLS: %v", wrong, alerts, err)
	}
	w.answered(t, 2*time.Second, stranger, root, name)
	size := harness.Status(t, s.Cmd.Process.Pid, "VmHWM:") / 1024
	if size > 100 {
		t.Errorf("the site took %.0f MB", size)
	}
	t.Logf("the longest of 200 reads took %v, of 20 stops %v; the site took %.0f MB at most; %d streams came as far as TLS",
		reads, stops, size, alerts)
}

// unchanged: what a caller sends and gets through the relay is passed on byte by byte.
func (w *world) unchanged(t *testing.T, from, relay, name string) {
	t.Helper()
	c, err := dialFrom(t.Context(), from, "tcp", relay+":443")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	sent := []byte(helloOf(name))
	for size := 1; size <= 16<<10; size *= 2 {
		record := append([]byte{23, 3, 3, byte(size >> 8), byte(size)}, make([]byte, size)...)
		rand.Read(record[5:])
		sent = append(sent, record...)
	}
	if _, err = c.Write(sent); err == nil {
		err = c.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("of %d bytes that were sent %d came back, or others: %v", len(sent), len(got), err)
	}
}

// TestZoneNeighbour: a site of the same zone asks for another's name and for one that leads there, opens the other's
// protocol through the relay and by a circuit, keeps its own callers waiting and asks for names without an end. It gets
// its own name and nothing else, and the other's callers are answered. What the relay passes on is unchanged.
func TestZoneNeighbour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, key := w.newSite(w.home()), identity.New()
	w.permit(s.key.ID(), key.ID())
	r := w.relay(zone)
	w.run(s, "on", r.Addresses)
	name := s.label(t) + "." + zone
	s.certified(t, name)
	victim, err := peer.Decode(s.key.ID().PeerID())
	if err != nil {
		t.Fatal(err)
	}
	w.setDNS("board.owner.test", name)
	asks := []string{name, strings.ToUpper(name), "board.owner.test", zone, "*." + zone, "x." + name, ""}
	next, _ := w.attacks(w.home(), hostile{Key: string(key.PEM()), Relay: r.Addresses[0], Victim: victim, Name: name, Ask: asks})
	own := (&site{key: key}).label(t) + "." + zone
	for _, asked := range asks {
		var a struct {
			Name string
			Own  bool
		}
		if text := next(); json.Unmarshal([]byte(text), &a) != nil || a.Name != own || a.Own {
			t.Errorf("a neighbour asks for %q and gets %s", asked, text)
		}
	}
	var reached []string
	for said := next(); said != "asks"; said = next() {
		reached = append(reached, said)
	}
	if want := []string{"relay: false", "circuit: true", "site: false"}; !slices.Equal(reached, want) {
		t.Errorf("a neighbour reaches %q, not %q", reached, want)
	}
	stranger := w.stranger()
	root := w.root()
	w.unchanged(t, stranger, r.IP, own)
	for range 3 {
		w.holds(w.stranger(), own, 20, "hello")
	}
	for range 5 {
		w.answered(t, 2*time.Second, stranger, root, name)
	}
	if p := s.state(t); !strings.Contains(p.URL, name) || w.authority.orders() != 1 {
		t.Errorf("%+v, %d orders", p, w.authority.orders())
	}
}
