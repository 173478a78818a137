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

// NewerProtocol sends a site a record of it that is newer than the one it shows: the site was
// restored, or its clock was wrong. The sender proves that it knows the realm; the record has
// the site's own signature.
const NewerProtocol protocol.ID = "/agentsite/newer/1"

// SendNewer sends a site its newer record, connecting if need be. It blocks for at most five
// seconds after it has connected.
func SendNewer(ctx context.Context, h host.Host, realm discovery.Realm, site peer.AddrInfo, newest *discovery.Signed) error {
	stream, end, _, err := openStream(ctx, h, site, NewerProtocol, timeout)
	if err != nil {
		return fmt.Errorf("cannot send %v its newer record (%w)", newest.Site, err)
	}
	defer end()
	b := newest.Short()
	if _, err := stream.Write(append(proof(realm, "newer", site.ID, h.ID(), nil, b), b...)); err != nil {
		return err
	}
	if err := stream.CloseWrite(); err != nil {
		return err
	}
	if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%v does not accept its newer record (%w)", newest.Site, err)
	}
	return nil
}

// receiveNewer receives a newer record of this site.
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
		return fmt.Errorf("%w, it is that of %v", discovery.ErrForged, r.Site)
	}
	s.newer(r)
	return nil
}
