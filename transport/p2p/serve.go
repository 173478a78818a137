package p2p

import (
	"context"
	"io"
	"log/slog"
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
	maxStreams          = 32 // of one peer
	maxStrangersStreams = 16 // of all strangers
	maxStrangerStreams  = 2  // of one of them

	// strangersPatience is how long a stranger may take to become known.
	strangersPatience = 30 * time.Second
)

// Serving is what a host does for those who call it.
type Serving struct {
	// Admit says what speaks against a peer. Who is not admitted is a stranger, who may
	// still say why, to claim the site or to show a grant: in few streams, for a short
	// time, until admitted.
	Admit func(rpc.Evidence) error
	// Stream serves one stream and closes it. It blocks until the stream's end or ctx's.
	Stream func(ctx context.Context, rw io.ReadWriteCloser, e rpc.Evidence, t rpc.Terms) error
}

// Serve serves those who call, until ctx ends, and returns once every stream has ended.
func (h *Host) Serve(ctx context.Context, s Serving) error {
	d := &desk{Serving: s, host: h, ctx: ctx, streams: make(map[peer.ID]int)}
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
	streams   map[peer.ID]int // how many each has
	strangers int             // how many all strangers have
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
	g := &guest{desk: d, who: s.Conn().RemotePeer()}
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
	who      peer.ID
	evidence rpc.Evidence

	known bool // is guarded by the desk's mu
}

// enter takes a place, and reports whether there was one.
func (g *guest) enter() bool {
	known := g.desk.Admit(g.evidence) == nil
	d := g.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.streams[g.who] >= maxStreams ||
		!known && (d.strangers >= maxStrangersStreams || d.streams[g.who] >= maxStrangerStreams) {
		return false
	}
	d.streams[g.who]++
	d.served.Add(1)
	if known {
		g.welcome()
	} else {
		d.strangers++
	}
	return true
}

// welcome is called with the desk's mu held.
func (g *guest) welcome() {
	g.known = true
	g.desk.host.places.admit(g.who)
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
	if g.desk.Admit(g.evidence) != nil {
		return false
	}
	g.desk.mu.Lock()
	defer g.desk.mu.Unlock()
	if !g.known {
		g.welcome()
		g.desk.strangers--
	}
	return true
}

func (g *guest) leave() {
	d := g.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	if !g.known {
		d.strangers--
	}
	if d.streams[g.who]--; d.streams[g.who] == 0 {
		delete(d.streams, g.who)
	}
	d.served.Done()
}
