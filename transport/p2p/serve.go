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
	maxAccountStreams  = 32 // of one account
	minPeerStreams     = 2  // of each peer, whatever others of its account have
	maxStrangersTotal  = 16 // of all strangers; the oldest gives way
	maxStrangerStreams = 2  // of one of them

	// strangersPatience is how long a stranger may take to become known.
	strangerTimeout = 30 * time.Second
)

// Serving is what a host does for those who call it.
type Handlers struct {
	// Admit returns a peer's account, which several peers may share, or why it is refused. A
	// peer that is not admitted is a stranger: it may claim the site or present a grant, in
	// few streams and for a short time.
	Admit func(rpc.Evidence) (account string, err error)
	// Stream serves one stream and closes it. It blocks until the stream's end or ctx's.
	Stream func(ctx context.Context, rw io.ReadWriteCloser, e rpc.Evidence, t rpc.Terms) error
}

// Serve serves those who call, until ctx ends, and returns once every stream has ended.
func (h *Host) Serve(ctx context.Context, s Handlers) error {
	d := &streamServer{Handlers: s, host: h, ctx: ctx, streams: make(map[string]int), peers: make(map[peer.ID]int)}
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
type streamServer struct {
	Handlers
	host *Host
	ctx  context.Context

	mu        sync.Mutex
	closed    bool
	streams   map[string]int  // how many each account has, and each stranger by its peer ID
	peers     map[peer.ID]int // how many each peer has
	strangers []*peerStream   // the streams of all of them, the oldest first
	served    sync.WaitGroup
}

func (d *streamServer) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.served.Wait()
}

// serve is run by the host in a goroutine of the stream's own.
func (d *streamServer) serve(s network.Stream, codec rpc.Codec) {
	g := &peerStream{server: d, stream: s, peer: s.Conn().RemotePeer()}
	g.evidence.Peer = g.peer.String()
	if !g.admit() {
		s.Reset()
		return
	}
	defer g.release()
	terms := rpc.Terms{Codec: codec}
	if !g.isKnown() {
		terms.Known = g.recheck
		late := time.AfterFunc(strangerTimeout, func() {
			if !g.recheck() {
				s.Reset()
			}
		})
		defer late.Stop()
	}
	if err := d.Stream(d.ctx, resettingStream{s}, g.evidence, terms); err != nil {
		slog.Debug("a peer's stream broke", "peer", g.peer, "err", err)
	}
	s.Close()
}

// heeded is a stream that waits for nobody who does not read.
type resettingStream struct{ network.Stream }

func (h resettingStream) Write(b []byte) (int, error) {
	n, err := h.Stream.Write(b)
	if err != nil {
		h.Reset()
	}
	return n, err
}

// guest is the peer of one stream.
type peerStream struct {
	server   *streamServer
	stream   network.Stream
	peer     peer.ID
	evidence rpc.Evidence

	// With the desk's mu.
	known   bool
	account string // the peer ID of a stranger
}

// enter takes a place, and reports whether there was one.
func (g *peerStream) admit() bool {
	account, err := g.server.Admit(g.evidence)
	known := err == nil
	if !known {
		account = g.evidence.Peer
	}
	d := g.server
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.streams[account] >= maxAccountStreams && d.peers[g.peer] >= minPeerStreams ||
		!known && d.streams[account] >= maxStrangerStreams {
		return false
	}
	g.account = account
	d.streams[account]++
	d.peers[g.peer]++
	d.served.Add(1)
	if known {
		g.markKnown()
		return true
	}
	if len(d.strangers) == maxStrangersTotal { // who only sits there keeps nobody out
		go d.strangers[0].stream.Reset()
		d.strangers = d.strangers[1:]
	}
	d.strangers = append(d.strangers, g)
	return true
}

// welcome is called with the desk's mu held.
func (g *peerStream) markKnown() {
	g.known = true
	g.server.host.limiter.markKnown(g.stream.Conn())
}

func (g *peerStream) isKnown() bool {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	return g.known
}

// becomes asks whether a stranger is one no more, and frees the stranger's place then.
func (g *peerStream) recheck() bool {
	if g.isKnown() {
		return true
	}
	account, err := g.server.Admit(g.evidence)
	if err != nil {
		return false
	}
	d := g.server
	d.mu.Lock()
	defer d.mu.Unlock()
	if !g.known {
		g.markKnown()
		d.removeStranger(g)
		decrement(d.streams, g.account)
		g.account = account
		d.streams[account]++
	}
	return true
}

func (g *peerStream) release() {
	d := g.server
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeStranger(g)
	decrement(d.streams, g.account)
	decrement(d.peers, g.peer)
	d.served.Done()
}

// noStranger is called with mu held.
func (d *streamServer) removeStranger(g *peerStream) {
	d.strangers = slices.DeleteFunc(d.strangers, func(s *peerStream) bool { return s == g })
}

func decrement[K comparable](count map[K]int, of K) {
	if count[of]--; count[of] == 0 {
		delete(count, of)
	}
}
