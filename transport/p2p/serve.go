package p2p

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// codecs are what may be spoken on a stream, by its protocol.
var codecs = map[protocol.ID]rpc.Codec{
	"/agentsite/mcp/1/cbor": rpc.CBOR,
	"/agentsite/mcp/1/json": rpc.JSON,
}

func protocolOf(codec rpc.Codec) protocol.ID {
	for id, c := range codecs {
		if c == codec {
			return id
		}
	}
	return ""
}

const (
	maxStreams          = 32 // of one account
	ownStreams          = 2  // of each peer, whatever others of its account have
	maxStrangersStreams = 16 // of all strangers; the oldest gives way
	maxStrangerStreams  = 2  // of one of them

	// strangersPatience is how long a stranger may take to become known.
	strangersPatience = 30 * time.Second
)

// Serving is what a host does for those who call it.
type Serving struct {
	// Admit returns a peer's account, which several peers may share, or why it is refused. A
	// peer that is not admitted is a stranger: it may claim the site or present a grant, in
	// few streams and for a short time.
	Admit func(rpc.Evidence) (account string, err error)
	// Stream serves one stream and closes it. It blocks until the stream's end or ctx's.
	Stream func(ctx context.Context, rw io.ReadWriteCloser, e rpc.Evidence, t rpc.Terms) error
}

// Serve serves those who call, until ctx ends, and returns once every stream has ended.
func (h *Host) Serve(ctx context.Context, s Serving) error {
	d := &desk{Serving: s, host: h, ctx: ctx, streams: make(map[string]int), peers: make(map[peer.ID]int)}
	for id, codec := range codecs {
		h.SetStreamHandler(id, func(s network.Stream) { d.serve(s, codec) })
	}
	<-ctx.Done()
	for id := range codecs {
		h.RemoveStreamHandler(id)
	}
	d.close()
	return nil
}

// desk is where streams come in.
type desk struct {
	Serving
	host *Host
	ctx  context.Context

	mu        sync.Mutex
	closed    bool
	streams   map[string]int  // how many each account has, and each stranger by its peer ID
	peers     map[peer.ID]int // how many each peer has
	strangers []*guest        // the streams of all of them, the oldest first
	served    sync.WaitGroup
}

func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.served.Wait()
}

// serve is run by the host in a goroutine of the stream's own.
func (d *desk) serve(s network.Stream, codec rpc.Codec) {
	g := &guest{desk: d, stream: s, who: s.Conn().RemotePeer()}
	g.evidence.Peer = g.who.String()
	if !g.enter() {
		s.Reset()
		return
	}
	defer g.leave()
	terms := rpc.Terms{Codec: codec}
	if !g.isKnown() {
		terms.Known = g.becomes
		late := time.AfterFunc(strangersPatience, func() {
			if !g.becomes() {
				s.Reset()
			}
		})
		defer late.Stop()
	}
	if err := d.Stream(d.ctx, heeded{s}, g.evidence, terms); err != nil {
		slog.Debug("a peer's stream broke", "peer", g.who, "err", err)
	}
	s.Close()
}

// heeded is a stream that waits for nobody who does not read.
type heeded struct{ network.Stream }

func (h heeded) Write(b []byte) (int, error) {
	n, err := h.Stream.Write(b)
	if err != nil {
		h.Reset()
	}
	return n, err
}

// guest is the peer of one stream.
type guest struct {
	desk     *desk
	stream   network.Stream
	who      peer.ID
	evidence rpc.Evidence

	// With the desk's mu.
	known   bool
	account string // the peer ID of a stranger
}

// enter takes a place, and reports whether there was one.
func (g *guest) enter() bool {
	account, err := g.desk.Admit(g.evidence)
	known := err == nil
	if !known {
		account = g.evidence.Peer
	}
	d := g.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.streams[account] >= maxStreams && d.peers[g.who] >= ownStreams ||
		!known && d.streams[account] >= maxStrangerStreams {
		return false
	}
	g.account = account
	d.streams[account]++
	d.peers[g.who]++
	d.served.Add(1)
	if known {
		g.welcome()
		return true
	}
	if len(d.strangers) == maxStrangersStreams { // who only sits there keeps nobody out
		go d.strangers[0].stream.Reset()
		d.strangers = d.strangers[1:]
	}
	d.strangers = append(d.strangers, g)
	return true
}

// welcome is called with the desk's mu held.
func (g *guest) welcome() {
	g.known = true
	g.desk.host.places.admit(g.stream.Conn())
}

func (g *guest) isKnown() bool {
	g.desk.mu.Lock()
	defer g.desk.mu.Unlock()
	return g.known
}

// becomes asks whether a stranger is one no more, and frees the stranger's place then.
func (g *guest) becomes() bool {
	if g.isKnown() {
		return true
	}
	account, err := g.desk.Admit(g.evidence)
	if err != nil {
		return false
	}
	d := g.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if !g.known {
		g.welcome()
		d.noStranger(g)
		left(d.streams, g.account)
		g.account = account
		d.streams[account]++
	}
	return true
}

func (g *guest) leave() {
	d := g.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noStranger(g)
	left(d.streams, g.account)
	left(d.peers, g.who)
	d.served.Done()
}

// noStranger is called with mu held.
func (d *desk) noStranger(g *guest) {
	d.strangers = slices.DeleteFunc(d.strangers, func(s *guest) bool { return s == g })
}

func left[K comparable](count map[K]int, of K) {
	if count[of]--; count[of] == 0 {
		delete(count, of)
	}
}
