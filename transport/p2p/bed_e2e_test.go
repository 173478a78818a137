//go:build e2e && linux

package p2p

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/discovery/bed"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2"
	"github.com/libp2p/go-libp2p/p2p/protocol/autonatv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	ma "github.com/multiformats/go-multiaddr"
)

// The machines of the world run this test binary again, which is a host and no test if this
// variable is set.
const role = "P2P_ROLE"

func init() {
	text := os.Getenv(role)
	if text == "" {
		return
	}
	if err := hostRole(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0) // with what is being dialled still
}

// given are the parameters of a host.
type given struct {
	Key     string // PEM
	Listen  []string
	Relays  []string
	Relay   bool
	PortMap bool
	Echo    bool
	Lies    bool // to who asks whether it is reached
}

// told is a message of a host: an answer or an event.
type told struct {
	What  string // up, addrs, reach, conn, end, no hole, answer
	At    time.Time
	Peer  string      `json:",omitempty"`
	Addr  string      `json:",omitempty"`
	In    bool        `json:",omitempty"`
	Addrs []string    `json:",omitempty"`
	Conns []connected `json:",omitempty"`
	Error string      `json:",omitempty"`
}

// connected is a connection, as one end has it.
type connected struct {
	Addr string
	In   bool
}

const echo = "/echo/1"

// hostRole is a host. It does what the lines of stdin say, and ends with them.
func hostRole(text string) error {
	var g given
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return err
	}
	key, err := identity.ParsePEM([]byte(g.Key))
	if err != nil {
		return err
	}
	o := Options{Key: key, Listen: g.Listen, PortMap: g.PortMap, Agent: "test"}
	if o.Relays, err = ParsePeers(g.Relays); err != nil {
		return err
	}
	if g.Relay {
		o.Relay = &Relay{}
	}
	h, err := New(o)
	if err != nil {
		return err
	}
	defer h.Close()
	h.SetStreamHandler(echo, func(s network.Stream) { _, _ = io.Copy(s, s); s.Close() })
	if g.Lies {
		h.SetStreamHandler(autonatv2.DialProtocol, h.lie)
	}

	var mu sync.Mutex
	say := func(t told) {
		mu.Lock()
		defer mu.Unlock()
		t.At = time.Now()
		b, _ := json.Marshal(t)
		fmt.Println(string(b))
	}
	h.Network().Notify(&network.NotifyBundle{
		ConnectedF: func(_ network.Network, c network.Conn) {
			say(told{What: "conn", Peer: c.RemotePeer().String(), Addr: c.RemoteMultiaddr().String(), In: c.Stat().Direction == network.DirInbound})
		},
		DisconnectedF: func(_ network.Network, c network.Conn) {
			say(told{What: "end", Peer: c.RemotePeer().String(), Addr: c.RemoteMultiaddr().String()})
		},
	})
	h.punched.mu.Lock()
	h.punched.ended = func(who peer.ID, success bool) {
		if !success {
			say(told{What: "no hole", Peer: who.String()})
		}
	}
	h.punched.mu.Unlock()
	changes, err := h.EventBus().Subscribe([]any{new(event.EvtLocalAddressesUpdated), new(event.EvtHostReachableAddrsChanged)})
	if err != nil {
		return err
	}
	say(told{What: "up", Addrs: texts(h.Addrs())})
	go func() {
		for e := range changes.Out() {
			switch e := e.(type) {
			case event.EvtLocalAddressesUpdated:
				say(told{What: "addrs", Addrs: texts(h.Addrs())})
			case event.EvtHostReachableAddrsChanged:
				say(told{What: "reach", Addrs: texts(e.Reachable)})
			}
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		say(answer(h, words[0], words[1:]))
	}
	return changes.Close()
}

// lie tells a host that asks whether it is reachable that it is, and confirms it on the connection
// that the host itself has opened.
func (h *Host) lie(s network.Stream) {
	defer s.Close()
	var asked pb.Message
	if err := util.NewDelimitedReader(s, 8192).ReadMsg(&asked); err != nil {
		return
	}
	protocols := func(a ma.Multiaddr) (all []int) {
		for _, c := range a {
			all = append(all, c.Code())
		}
		return all
	}
	for i, b := range asked.GetDialRequest().GetAddrs() {
		if a, err := ma.NewMultiaddrBytes(b); err != nil || !slices.Equal(protocols(a), protocols(s.Conn().RemoteMultiaddr())) {
			continue
		}
		back, err := h.NewStream(context.Background(), s.Conn().RemotePeer(), autonatv2.DialBackProtocol)
		if err != nil {
			return
		}
		defer back.Close()
		_ = util.NewDelimitedWriter(back).WriteMsg(&pb.DialBack{Nonce: asked.GetDialRequest().Nonce})
		_ = util.NewDelimitedWriter(s).WriteMsg(&pb.Message{Msg: &pb.Message_DialResponse{DialResponse: &pb.DialResponse{
			Status: pb.DialResponse_OK, AddrIdx: uint32(i), DialStatus: pb.DialStatus_OK}}})
		return
	}
}

// answer does what the test asks.
func answer(h *Host, verb string, words []string) told {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	a := told{What: "answer"}
	fail := func(err error) told { a.Error = err.Error(); return a }
	switch verb {
	case "addrs":
		a.Addrs = texts(h.Addrs())
	case "connect": // ADDRESS/p2p/ID
		to, err := peer.AddrInfoFromString(words[0])
		if err != nil {
			return fail(err)
		}
		h.clearBackoff(to.ID) // who waits has to be asked again at once
		if err := h.Connect(network.WithAllowLimitedConn(ctx, "test"), *to); err != nil {
			return fail(err)
		}
	case "close": // ID
		p, err := peer.Decode(words[0])
		if err != nil {
			return fail(err)
		}
		_ = h.Network().ClosePeer(p)
	case "conns": // ID
		p, err := peer.Decode(words[0])
		if err != nil {
			return fail(err)
		}
		for _, c := range h.Network().ConnsToPeer(p) {
			a.Conns = append(a.Conns, connected{c.RemoteMultiaddr().String(), c.Stat().Direction == network.DirInbound})
		}
	case "echo": // ID
		p, err := peer.Decode(words[0])
		if err != nil {
			return fail(err)
		}
		s, err := h.NewStream(network.WithAllowLimitedConn(network.WithNoDial(ctx, "test"), "test"), p, echo)
		if err != nil {
			return fail(err)
		}
		_ = s.SetDeadline(time.Now().Add(5 * time.Second))
		text := strings.Repeat("x", 400<<10)
		go func() { _, _ = io.WriteString(s, text); _ = s.CloseWrite() }()
		b, err := io.ReadAll(s)
		if err != nil || string(b) != text {
			return fail(fmt.Errorf("%d bytes came back: %v", len(b), err))
		}
		a.Addr = s.Conn().RemoteMultiaddr().String()
	default:
		return fail(fmt.Errorf("%q?", verb))
	}
	return a
}

func texts(all []ma.Multiaddr) []string {
	read := []string{}
	for _, a := range all {
		read = append(read, a.String())
	}
	return read
}

// process is a host on a machine.
type process struct {
	t     *testing.T
	given given
	id    string
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu      sync.Mutex
	changed chan struct{} // closed when something was told
	told    []told
	answers chan told
	ended   chan struct{}
}

// start runs a host. It ends with the test.
func start(t *testing.T, on string, g given) *process {
	t.Helper()
	if g.Key == "" {
		g.Key = string(identity.New().PEM())
	}
	if g.Listen == nil {
		g.Listen = ListenAll(4001)
	}
	key, err := identity.ParsePEM([]byte(g.Key))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, given: g, id: key.ID().PeerID(), changed: make(chan struct{}), answers: make(chan told, 1), ended: make(chan struct{})}
	argv := bed.On(on, os.Args[0])
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append(os.Environ(), role+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.stdin, err = p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		defer p.cmd.Wait()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e told
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("a host says %s", lines.Text())
				continue
			}
			if e.What == "answer" {
				p.answers <- e
				continue
			}
			p.mu.Lock()
			p.told = append(p.told, e)
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	t.Cleanup(p.stop)
	p.await(20*time.Second, "it is up", func(e told) bool { return e.What == "up" })
	return p
}

// kill ends it at once, without a word to anybody.
func (p *process) kill() { _ = p.cmd.Process.Kill(); <-p.ended }

// stop ends it cleanly.
func (p *process) stop() { p.stdin.Close(); <-p.ended }

// await waits until something was told, now or before, and returns that.
func (p *process) await(within time.Duration, what string, is func(told) bool) told {
	p.t.Helper()
	return p.awaitSince(time.Time{}, within, what, is)
}

// awaitSince is await for what was told after a moment.
func (p *process) awaitSince(since time.Time, within time.Duration, what string, is func(told) bool) (one told) {
	p.t.Helper()
	p.until(within, what, func(all []told) bool {
		i := slices.IndexFunc(all, func(e told) bool { return e.At.After(since) && is(e) })
		if i >= 0 {
			one = all[i]
		}
		return i >= 0
	})
	return one
}

// until waits until what was told is enough.
func (p *process) until(within time.Duration, what string, enough func([]told) bool) {
	p.t.Helper()
	for end := time.After(within); ; {
		p.mu.Lock()
		all, changed := p.told, p.changed
		p.mu.Unlock()
		if enough(all) {
			return
		}
		select {
		case <-changed:
		case <-end:
			p.t.Fatalf("not within %v: %s; it told %s", within, what, listed(all))
		}
	}
}

func (p *process) all() []told {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told)
}

func listed(all []told) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "\n  %s %s %s %s in=%v %v", e.At.Format("05.000"), e.What, e.Peer, e.Addr, e.In, e.Addrs)
	}
	return b.String()
}

// ask sends a command to the host.
func (p *process) ask(words ...string) told {
	p.t.Helper()
	fmt.Fprintln(p.stdin, strings.Join(words, " "))
	select {
	case a := <-p.answers:
		return a
	case <-time.After(20 * time.Second):
		p.t.Fatalf("no answer to %q", words)
		return told{}
	}
}

// must is ask for what has to go well.
func (p *process) must(words ...string) told {
	p.t.Helper()
	a := p.ask(words...)
	if a.Error != "" {
		p.t.Fatalf("%q: %s", words, a.Error)
	}
	return a
}

func relayed(addr string) bool { return strings.Contains(addr, "/p2p-circuit") }

// directTo is a connection to a peer without a relay.
func (p *process) directTo(peer *process) func(told) bool {
	return func(e told) bool { return e.What == "conn" && e.Peer == peer.id && !relayed(e.Addr) }
}

// placeAt is that a host's addresses are such that it is called through a relay.
func placeAt(relay string) func(told) bool {
	return func(e told) bool {
		return (e.What == "addrs" || e.What == "up") && slices.ContainsFunc(e.Addrs, func(a string) bool { return strings.Contains(a, relay+"/p2p-circuit") })
	}
}

func noPlaceAt(relay string) func(told) bool {
	return func(e told) bool { return e.What == "addrs" && !placeAt(relay)(e) }
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond)
}
