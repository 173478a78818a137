//go:build e2e && linux

package internet

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
	"agentsite/discovery/dht"
	"agentsite/node/identity"
	"agentsite/transport/p2p"

	tablepb "github.com/libp2p/go-libp2p-kad-dht/pb"
	libp2p "github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	circuitpb "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	circuit "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
)

// roleEnv selects the role that the test's own program plays on a machine of the world.
const roleEnv = "E2E_ROLE"

// role describes the behaviour of a program, until its input ends.
type role struct {
	What  string
	Relay []string // its addresses
	Sites []string // did:keys
	IP    string   // where it listens
	Keys  int
}

func init() {
	if text := os.Getenv(roleEnv); text != "" {
		var r role
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			panic(err)
		}
		r.run()
	}
}

func (r role) run() {
	do, ok := map[string]func(context.Context) error{"hostile": r.hostile, "no relay": r.noRelay, "closing relay": r.closingRelay, "count": count, "reach": r.reach}[r.What]
	if !ok {
		panic(r.What)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	if err := do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, r.What, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// actor is a role on a machine.
type actor struct {
	said *harness.LogBuffer
	end  func()
}

// act starts a role, which ends with the test, or before.
func act(t testing.TB, on string, r role) *actor {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	argv := bed.On(on, os.Args[0])
	if r.What == "hostile" {
		argv = append([]string{"nice", "-n", "19"}, argv...) // they are elsewhere
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	a := &actor{said: &harness.LogBuffer{}}
	cmd.Stdout, cmd.Stderr = a.said, os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	a.end = sync.OnceFunc(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", r.What, err)
		}
	})
	t.Cleanup(a.end)
	return a
}

// last is the last line that was said.
func (a *actor) last() string {
	all := strings.Split(strings.TrimSpace(a.said.String()), "\n")
	return all[len(all)-1]
}

// host is one more peer on that machine.
func (r role) host(port int) (*p2p.Host, error) {
	listen, err := p2p.ListenAddrs(fmt.Sprintf("%s:%d", r.IP, port))
	if err != nil {
		return nil, err
	}
	return p2p.New(p2p.Options{Key: identity.New(), Listen: listen})
}

const table = dht.Prefix + "/kad/1.0.0"

// hostile runs strangers that take as many idle circuits and silent streams as they can, of a relay
// and of the sites with reservations there. Each is also a DHT server that answers only the relay,
// and reconnects after evictions.
func (r role) hostile(ctx context.Context) error {
	relay, err := p2p.ParsePeers(r.Relay)
	if err != nil {
		return err
	}
	var circuits, refused, streams atomic.Int64
	var all, tried sync.WaitGroup
	for i := range r.Keys {
		h, err := r.host(9000 + i)
		if err != nil {
			return err
		}
		h.SetStreamHandler(table, func(s libp2p.Stream) {
			read := util.NewDelimitedReader(s, 4096)
			defer read.Close()
			var m tablepb.Message // which only the relay is answered, so that it names this server to others
			if s.Conn().RemotePeer() == relay[0].ID && read.ReadMsg(&m) == nil {
				_ = util.NewDelimitedWriter(s).WriteMsg(&tablepb.Message{Type: m.Type, Key: m.Key})
				_ = s.CloseWrite()
			}
			_, _ = io.Copy(io.Discard, s)
		})
		// hold opens a stream and keeps it until it is ended, again and again, and comes back
		// to the relay where it has to.
		hold := func(open func() (libp2p.Stream, error)) {
			tried.Add(1)
			first := sync.OnceFunc(tried.Done)
			all.Go(func() {
				defer first() // it may be ended before it has begun
				for ctx.Err() == nil {
					one, cancel := context.WithTimeout(ctx, 10*time.Second)
					err := h.Connect(one, relay[0])
					cancel()
					var s libp2p.Stream
					if err == nil {
						s, err = open()
					}
					first()
					if err == nil {
						stop := context.AfterFunc(ctx, func() { s.Reset() })
						_, _ = io.Copy(io.Discard, s)
						stop()
						s.Reset()
					}
					select {
					case <-ctx.Done():
					case <-time.After(500 * time.Millisecond):
					}
				}
			})
		}
		for _, did := range r.Sites {
			id, err := identity.Parse(did)
			if err != nil {
				return err
			}
			site, err := p2p.PeerID(id)
			if err != nil {
				return err
			}
			for range 4 {
				hold(func() (libp2p.Stream, error) {
					s, err := halfOpen(ctx, h, relay[0].ID, site)
					if err == nil {
						circuits.Add(1)
					} else {
						refused.Add(1)
					}
					return s, err
				})
			}
		}
		for range 4 {
			hold(func() (libp2p.Stream, error) {
				s, err := h.NewStream(libp2p.WithNoDial(ctx, "e2e"), relay[0].ID, table)
				if err == nil {
					streams.Add(1)
					_, err = s.Write([]byte{0x7f}) // how long it would be what they never say
				}
				return s, err
			})
		}
	}
	tried.Wait()
	fmt.Println("all press")
	<-ctx.Done()
	all.Wait()
	fmt.Printf("%d circuits, %d refused, %d silent streams of the table\n", circuits.Load(), refused.Load(), streams.Load())
	return nil
}

// halfOpen is a circuit through a relay to a site, of which nothing is made.
func halfOpen(ctx context.Context, h *p2p.Host, relay, site peer.ID) (libp2p.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s, err := h.NewStream(libp2p.WithNoDial(ctx, "e2e"), relay, circuit.ProtoIDv2Hop)
	if err != nil {
		return nil, err
	}
	_ = s.SetDeadline(time.Now().Add(10 * time.Second))
	var answer circuitpb.HopMessage
	read := util.NewDelimitedReader(s, 4096)
	defer read.Close()
	err = util.NewDelimitedWriter(s).WriteMsg(&circuitpb.HopMessage{
		Type: circuitpb.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: site}),
	})
	if err == nil {
		err = read.ReadMsg(&answer)
	}
	if err == nil && answer.GetStatus() != circuitpb.Status_OK {
		err = fmt.Errorf("%v", answer.GetStatus())
	}
	if err != nil {
		s.Reset()
		return nil, err
	}
	return s, s.SetDeadline(time.Time{})
}

// noRelay is a peer at an address where a relay was.
func (r role) noRelay(ctx context.Context) error {
	h, err := r.host(8475)
	if err != nil {
		return err
	}
	fmt.Println(h.ID())
	<-ctx.Done()
	return nil
}

// closingRelay gives everybody a place, and ends the connection.
func (r role) closingRelay(ctx context.Context) error {
	h, err := r.host(8475)
	if err != nil {
		return err
	}
	h.SetStreamHandler(circuit.ProtoIDv2Hop, func(s libp2p.Stream) {
		until := uint64(time.Now().Add(time.Hour).Unix())
		_ = util.NewDelimitedWriter(s).WriteMsg(&circuitpb.HopMessage{
			Type: circuitpb.HopMessage_STATUS.Enum(), Status: circuitpb.Status_OK.Enum(), Reservation: &circuitpb.Reservation{Expire: &until},
		})
		_ = s.CloseWrite()
		_, _ = io.Copy(io.Discard, s) // until it has been heard
		s.Conn().Close()
	})
	fmt.Println(h.ID())
	<-ctx.Done()
	return nil
}

// reach reaches each of the sites through the relay, as often as it takes, and says so.
func (r role) reach(ctx context.Context) error {
	h, err := p2p.New(p2p.Options{Key: identity.New()})
	if err != nil {
		return err
	}
	var through []string
	for _, at := range r.Relay {
		through = append(through, at+"/p2p-circuit")
	}
	var all sync.WaitGroup
	for _, did := range r.Sites {
		id, err := identity.Parse(did)
		if err != nil {
			return err
		}
		all.Go(func() {
			for ctx.Err() == nil && h.Reach(ctx, id, through) != nil {
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		fmt.Println("all reached")
	}
	<-ctx.Done()
	return nil
}

// count prints the number of handshakes that port 8475 of its machine has answered, at each
// increase. It counts TCP's second segment and QUIC's first packet of the server.
func count(ctx context.Context) error {
	const everything = 3<<8 | 3>>8 // ETH_P_ALL in the network's order
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, everything)
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); os.Exit(0) }()
	out := bufio.NewWriter(os.Stdout)
	seen := make(map[string]bool)
	fmt.Println(0)
	for b := make([]byte, 2048); ; {
		n, _, err := syscall.Recvfrom(fd, b, 0)
		if err != nil {
			return err
		}
		if key := answered(b[:n]); key != "" && !seen[key] {
			seen[key] = true
			fmt.Fprintln(out, len(seen))
			out.Flush()
		}
	}
}

// answered names the connection of which an IPv4 packet is a server's first answer; "" for
// any other packet.
func answered(b []byte) string {
	if len(b) < 20 || b[0]>>4 != 4 {
		return ""
	}
	to, kind := string(b[16:20]), b[9]
	b = b[min(int(b[0]&15)*4, len(b)):]
	if len(b) < 20 || binary.BigEndian.Uint16(b) != 8475 {
		return ""
	}
	to += string(b[2:4])
	switch {
	case kind == syscall.IPPROTO_TCP && b[13]&0x12 == 0x12: // SYN and ACK
		return to + string(b[4:8])
	case kind == syscall.IPPROTO_UDP && b[8]&0xf0 == 0xc0: // a long header, Initial
		return to + string(b[13:min(14+int(b[13]), len(b))]) // the client's connection ID
	}
	return ""
}
