package card

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

var errOtherRealm = errors.New("the peer does not prove that it is in the realm")

// Fetch fetches a site's card, connecting if need be, also through a relay. The card comes
// from the site itself, which is in the realm, and the record is the site's with a valid
// signature. It blocks for at most five seconds after it has connected, and retries once if
// the connection is closed. It is safe for concurrent use, but a site answers only three
// requests of one peer at a time.
func Fetch(ctx context.Context, h host.Host, realm discovery.Realm, site peer.AddrInfo) (Card, error) {
	id, err := identity.Parse(site.ID.String())
	if err != nil {
		return Card{}, err
	}
	c, ended, err := fetchOnce(ctx, h, realm, id, site)
	if ended { // either end may have evicted it
		c, _, err = fetchOnce(ctx, h, realm, id, site)
	}
	return c, err
}

// fetchOnce also reports whether it failed because the connection was closed.
func fetchOnce(ctx context.Context, h host.Host, realm discovery.Realm, id identity.ID, site peer.AddrInfo) (c Card, ended bool, err error) {
	stream, end, ended, err := openStream(ctx, h, site, Protocol, timeout)
	if err != nil {
		return Card{}, ended, fmt.Errorf("cannot fetch the card of %v (%w)", id, err)
	}
	defer end()
	if c, err = exchange(stream, realm, h.ID(), id, site.ID); err != nil {
		return Card{}, stream.Conn().IsClosed(), fmt.Errorf("no card for this realm from %v (%w)", id, err)
	}
	return c, false, nil
}

// openStream opens a stream to a site, which is reset by end and after limit. ended reports whether
// it failed because the connection was closed.
func openStream(ctx context.Context, h host.Host, site peer.AddrInfo, id protocol.ID, limit time.Duration) (s network.Stream, end func(), ended bool, err error) {
	ctx = network.WithAllowLimitedConn(ctx, "card")
	if err := h.Connect(ctx, site); err != nil {
		return nil, nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	if s, err = h.NewStream(ctx, site.ID, id); err != nil {
		defer cancel()
		return nil, nil, ctx.Err() == nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Reset() })
	return s, func() { stop(); s.Reset(); cancel() }, false, nil
}

// cardStream is the part of a stream that exchange needs.
type cardStream interface {
	io.ReadWriter
	CloseWrite() error
}

func exchange(stream cardStream, realm discovery.Realm, self peer.ID, id identity.ID, site peer.ID) (Card, error) {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce)
	if _, err := stream.Write(append(nonce, proof(realm, "ask", site, self, nonce, nil)...)); err != nil {
		return Card{}, err
	}
	if err := stream.CloseWrite(); err != nil {
		return Card{}, err
	}
	b, err := io.ReadAll(io.LimitReader(stream, proofSize+maxCard+1))
	if err != nil {
		return Card{}, err
	}
	return readAnswer(b, realm, self, id, site, nonce)
}

// readAnswer verifies and decodes an answer.
func readAnswer(b []byte, realm discovery.Realm, self peer.ID, id identity.ID, site peer.ID, nonce []byte) (Card, error) {
	if len(b) < proofSize || len(b) > proofSize+maxCard {
		return Card{}, fmt.Errorf("an answer of %d bytes", len(b))
	}
	if !hmac.Equal(b[:proofSize], proof(realm, "answer", site, self, nonce, b[proofSize:])) {
		return Card{}, errOtherRealm
	}
	return read(b[proofSize:], id)
}
