package p2p

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/agents/principal"
	"agentsite/transport/rpc"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// codecs are the encodings of streams by protocol.
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
	maxStrangersTotal  = 16 // of all strangers; the oldest is closed for a new one
	maxStrangerStreams = 2  // of one stranger

	// strangerTimeout bounds how long a stranger may take to become known.
	strangerTimeout = 30 * time.Second
)

// Handlers serve the peers that call a host.
type Handlers struct {
	// Key returns the principal of a peer, or an error for a stranger. A stranger may claim the site or
	// present a grant, on few streams and for a short time.
	Key func(peer string) (principal.Principal, error)
	// Stream serves one stream and closes it. It blocks until the stream or ctx ends. from asks Key, for
	// each call, because a stream may outlive a permission.
	Stream func(ctx context.Context, rw io.ReadWriteCloser, from func() rpc.Sender, t rpc.Terms) error
}

// Serve serves calls until ctx ends, and returns once every stream has ended.
func (h *Host) Serve(ctx context.Context, s Handlers) error {
	srv := &streamServer{Handlers: s, host: h, ctx: ctx, streams: make(map[string]int), peers: make(map[peer.ID]int)}
	for id, codec := range codecs {
		h.SetStreamHandler(id, func(s network.Stream) { srv.serve(s, codec) })
	}
	<-ctx.Done()
	for id := range codecs {
		h.RemoveStreamHandler(id)
	}
	srv.close()
	return nil
}

// streamServer accepts streams and limits them.
type streamServer struct {
	Handlers
	host *Host
	ctx  context.Context

	mu        sync.Mutex
	closed    bool
	streams   map[string]int  // by account, and by peer ID for strangers
	peers     map[peer.ID]int // by peer
	strangers []*peerStream   // oldest first
	served    sync.WaitGroup
}

func (srv *streamServer) close() {
	srv.mu.Lock()
	srv.closed = true
	srv.mu.Unlock()
	srv.served.Wait()
}

// serve handles a stream, in a goroutine of its own.
func (srv *streamServer) serve(s network.Stream, codec rpc.Codec) {
	p := &peerStream{server: srv, stream: s, peer: s.Conn().RemotePeer()}
	p.key = p.peer.String()
	if !p.admit() {
		s.Reset()
		return
	}
	defer p.release()
	terms := rpc.Terms{Codec: codec}
	if !p.isKnown() {
		terms.Known = p.recheck
		late := time.AfterFunc(strangerTimeout, func() {
			if !p.recheck() {
				s.Reset()
			}
		})
		defer late.Stop()
	}
	if err := srv.Stream(srv.ctx, resettingStream{s}, p.sender, terms); err != nil {
		slog.Debug("stream failed", "peer", p.peer, "err", err)
	}
	s.Close()
}

// resettingStream resets a stream after a failed write: the peer does not read.
type resettingStream struct{ network.Stream }

func (h resettingStream) Write(b []byte) (int, error) {
	n, err := h.Stream.Write(b)
	if err != nil {
		h.Reset()
	}
	return n, err
}

// peerStream is an inbound stream and its peer.
type peerStream struct {
	server *streamServer
	stream network.Stream
	peer   peer.ID
	key    string // the peer, as text

	// guarded by the server's mu, as is account
	known   bool
	account string // the peer ID of a stranger
}

// sender returns the peer as it is known now.
func (p *peerStream) sender() rpc.Sender {
	who, err := p.server.Key(p.key)
	return rpc.Sender{Who: who, Refused: err, Key: p.key}
}

// admit counts the stream, and returns false if there are too many.
func (p *peerStream) admit() bool {
	who, err := p.server.Key(p.key)
	known, account := err == nil, who.Account
	if !known {
		account = p.key
	}
	srv := p.server
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.closed || srv.streams[account] >= maxAccountStreams && srv.peers[p.peer] >= minPeerStreams ||
		!known && srv.streams[account] >= maxStrangerStreams {
		return false
	}
	p.account = account
	srv.streams[account]++
	srv.peers[p.peer]++
	srv.served.Add(1)
	if known {
		p.markKnown()
		return true
	}
	if len(srv.strangers) == maxStrangersTotal { // idle strangers keep nobody out
		go srv.strangers[0].stream.Reset()
		srv.strangers = srv.strangers[1:]
	}
	srv.strangers = append(srv.strangers, p)
	return true
}

// markKnown protects the peer's connection. The caller holds the server's mu.
func (p *peerStream) markKnown() {
	p.known = true
	p.server.host.limiter.markKnown(p.stream.Conn())
}

func (p *peerStream) isKnown() bool {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return p.known
}

// recheck reports whether the peer is known now, and then counts the stream for its account.
func (p *peerStream) recheck() bool {
	if p.isKnown() {
		return true
	}
	who, err := p.server.Key(p.key)
	if err != nil {
		return false
	}
	srv := p.server
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if !p.known {
		p.markKnown()
		srv.removeStranger(p)
		decrement(srv.streams, p.account)
		p.account = who.Account
		srv.streams[p.account]++
	}
	return true
}

func (p *peerStream) release() {
	srv := p.server
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.removeStranger(p)
	decrement(srv.streams, p.account)
	decrement(srv.peers, p.peer)
	srv.served.Done()
}

// removeStranger is called with mu held.
func (srv *streamServer) removeStranger(p *peerStream) {
	srv.strangers = slices.DeleteFunc(srv.strangers, func(s *peerStream) bool { return s == p })
}

func decrement[K comparable](count map[K]int, of K) {
	if count[of]--; count[of] == 0 {
		delete(count, of)
	}
}
