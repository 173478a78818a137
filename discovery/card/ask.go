package card

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"agentsite/discovery"
	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

var errOtherRealm = errors.New("whoever is there does not show that it is of the realm")

// Ask asks a site for its card, and connects to it if need be, over a relay too. What it
// returns came from the site itself, which is of the realm; the record is the site's, and
// its signature holds. It blocks for at most five seconds after it is connected, and asks
// once more where its connection ends before. It is safe for concurrent use, but a site
// answers only three of one peer at a time.
func Fetch(ctx context.Context, h host.Host, realm discovery.Realm, site peer.AddrInfo) (Card, error) {
	id, err := identity.Parse(site.ID.String())
	if err != nil {
		return Card{}, err
	}
	ctx = network.WithAllowLimitedConn(ctx, "card")
	c, ended, err := fetchOnce(ctx, h, realm, id, site)
	if ended { // either end may have needed the connection's place just then
		c, _, err = fetchOnce(ctx, h, realm, id, site)
	}
	return c, err
}

// askOnce reports besides whether it failed for a connection that ended.
func fetchOnce(ctx context.Context, h host.Host, realm discovery.Realm, id identity.ID, site peer.AddrInfo) (c Card, ended bool, err error) {
	if err := h.Connect(ctx, site); err != nil {
		return Card{}, false, fmt.Errorf("%v cannot be asked for its card: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := h.NewStream(ctx, site.ID, Protocol)
	if err != nil {
		return Card{}, ctx.Err() == nil, fmt.Errorf("%v cannot be asked for its card: %w", id, err)
	}
	defer stream.Reset() // after the end of it that is nothing
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	if c, err = exchange(stream, realm, h.ID(), id, site.ID); err != nil {
		return Card{}, stream.Conn().IsClosed(), fmt.Errorf("%v has no card for this realm: %w", id, err)
	}
	return c, false, nil
}

// asking is a stream, as far as it takes part.
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

// answered reads an answer of whoever is there.
func readAnswer(b []byte, realm discovery.Realm, self peer.ID, id identity.ID, site peer.ID, nonce []byte) (Card, error) {
	if len(b) < proofSize || len(b) > proofSize+maxCard {
		return Card{}, fmt.Errorf("it answers with %d bytes", len(b))
	}
	if !hmac.Equal(b[:proofSize], proof(realm, "answer", site, self, nonce, b[proofSize:])) {
		return Card{}, errOtherRealm
	}
	return read(b[proofSize:], id)
}
