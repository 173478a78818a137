package card

import (
	"context"
	"crypto/hmac"
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

// NewerProtocol is what a site is told with that a newer record of it is known than it
// shows: it was restored, or its clock was wrong. Who tells sends a proof that it knows the
// realm, and the record; the signature of that is the site's own.
const NewerProtocol protocol.ID = "/agentsite/newer/1"

// Tell tells a site of a newer record of it, and connects to it if need be. It blocks for
// at most five seconds after it is connected.
func SendNewer(ctx context.Context, h host.Host, realm discovery.Realm, site peer.AddrInfo, newest *discovery.Signed) error {
	ctx = network.WithAllowLimitedConn(ctx, "card")
	if err := h.Connect(ctx, site); err != nil {
		return fmt.Errorf("%v cannot be told of its newer record: %w", newest.Site, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := h.NewStream(ctx, site.ID, NewerProtocol)
	if err != nil {
		return fmt.Errorf("%v cannot be told of its newer record: %w", newest.Site, err)
	}
	defer stream.Reset() // after the end of it that is nothing
	defer context.AfterFunc(ctx, func() { stream.Reset() })()
	b := newest.Short()
	if _, err := stream.Write(append(proof(realm, "newer", site.ID, h.ID(), nil, b), b...)); err != nil {
		return err
	}
	if err := stream.CloseWrite(); err != nil {
		return err
	}
	if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%v does not take its newer record: %w", newest.Site, err)
	}
	return nil
}

// hear takes a record of the site itself.
func (s *server) receiveNewer(stream network.Stream, site, teller peer.ID) error {
	if err := stream.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	b, err := io.ReadAll(io.LimitReader(stream, proofSize+discovery.MaxRecord+1))
	if err != nil {
		return err
	}
	if len(b) < proofSize || !hmac.Equal(b[:proofSize], proof(s.realm, "newer", site, teller, nil, b[proofSize:])) {
		return errOtherRealm
	}
	r, err := discovery.Open(b[proofSize:])
	if err != nil {
		return err
	}
	if id, err := identity.Parse(site.String()); err != nil || r.Site != id {
		return fmt.Errorf("%w: it is that of %v", discovery.ErrForged, r.Site)
	}
	s.newer(r)
	return nil
}
