package dht

import (
	"context"
	"errors"
	"time"

	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	maxRequest           = 16 << 10 // bytes; the library would hold four million
	maxRequests          = 512      // requests at a time
	maxRequestsPerPrefix = 64       // of one network
	maxRequestsPerPeer   = 8

	// readPatience is how long a request may take to come, and writePatience an answer to be
	// taken. The library waits for a minute.
	readTimeout, writeTimeout = 4 * time.Second, 10 * time.Second
)

// limitedHost is the host for the library: it protects no connections, dials directly with a
// short timeout, and limits inbound requests.
type limitedHost struct {
	host.Host
	requests quota.Quota
}

func newLimitedHost(h host.Host) *limitedHost { return &limitedHost{Host: h} }

// lookupTarget is the context key of a lookup's target. The library would dial it for
// seconds, while the caller may know better addresses.
type lookupTarget struct{}

// Connect never uses relays: servers are publicly reachable.
func (g *limitedHost) Connect(ctx context.Context, p peer.AddrInfo) error {
	if ctx.Value(lookupTarget{}) == p.ID {
		return errors.New("the target of the lookup is not dialled")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return g.Host.Connect(network.WithForceDirectDial(ctx, "dht"), p)
}

func (g *limitedHost) ConnManager() connmgr.ConnManager { return unprotected{g.Host.ConnManager()} }

// unprotected is a connection manager that protects nothing. The library would protect every
// peer that claims to be a server.
type unprotected struct{ connmgr.ConnManager }

func (unprotected) Protect(peer.ID, string)        {}
func (unprotected) Unprotect(peer.ID, string) bool { return false }

// SetStreamHandler limits the streams that the library serves.
func (g *limitedHost) SetStreamHandler(id protocol.ID, handle network.StreamHandler) {
	g.Host.SetStreamHandler(id, func(s network.Stream) {
		c := s.Conn()
		turn := []quota.Limit{{Group: c.RemotePeer(), Most: maxRequestsPerPeer}, {Group: quota.PrefixOf(c.RemoteMultiaddr()), Most: maxRequestsPerPrefix}, {Most: maxRequests}}
		if !g.requests.Take(turn...) {
			s.Reset()
			return
		}
		defer g.requests.Release(turn...)
		s.SetReadDeadline(time.Now().Add(readTimeout))
		handle(&limitedStream{Stream: s})
	})
}

// limitedStream is a stream of length-prefixed messages of at most maxRequest bytes, with a
// timeout for each.
type limitedStream struct {
	network.Stream
	left   uint64 // bytes of the message
	length uint64 // as far as its prefix was read
	shift  uint
}

var errRequestTooLong = errors.New("a request is too long")

// Read ends at the end of a message, and fails if that is too long.
func (s *limitedStream) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if s.left > 0 {
		n, err := s.Stream.Read(b[:min(uint64(len(b)), s.left)])
		s.left -= uint64(n)
		return n, err
	}
	n, err := s.Stream.Read(b[:1])
	if n == 0 {
		return n, err
	}
	s.length |= uint64(b[0]&0x7f) << s.shift
	s.shift += 7
	if s.length > maxRequest || s.shift > 28 {
		return 0, errRequestTooLong
	}
	if b[0] < 0x80 {
		s.SetReadDeadline(time.Now().Add(readTimeout))
		s.left, s.length, s.shift = s.length, 0, 0
	}
	return n, err
}

// Write is limited by a timeout, and starts that of the next request.
func (s *limitedStream) Write(b []byte) (int, error) {
	s.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := s.Stream.Write(b)
	s.SetReadDeadline(time.Now().Add(readTimeout)) // for the next request
	return n, err
}
