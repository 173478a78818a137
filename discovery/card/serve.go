package card

import (
	"bytes"
	"crypto/hmac"
	"io"
	"time"

	"agentsite/discovery"
	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// Protocol is what cards are asked for with. Who asks sends a nonce and a proof that it
// knows the realm, and gets a proof and the card; both proofs hold between these two
// peers only, and for this nonce.
const Protocol protocol.ID = "/agentsite/card/1"

const (
	timeout = 5 * time.Second

	// Strangers, who have sixteen connections, cannot take all places. They do not count by
	// network: all who come over one relay have the same, and what one network may have of
	// the connections is bounded there.
	maxServed        = 64
	maxServedPerPeer = 3

	nonceSize = 16
	proofSize = 32
)

// proof shows that its maker knows the realm. What is asked and what is answered differ.
func proof(realm discovery.Realm, what string, site, asker peer.ID, nonce, card []byte) []byte {
	p := realm.Hash("card", what, string(site), string(asker), string(nonce), string(card))
	return p[:]
}

type server struct {
	realm  discovery.Realm
	card   func() Card
	newer  func(*discovery.Signed)
	served quota.Quota
}

// Serve shows the site's card as it is now to everybody in the realm who asks, until stop.
// Others learn nothing, not even whether there is one. now is called by many at a time, and
// so is newer, with records that the site itself has signed and others know.
func Serve(h host.Host, realm discovery.Realm, now func() Card, newer func(*discovery.Signed)) (stop func()) {
	s := &server{realm: realm, card: now, newer: newer}
	h.SetStreamHandler(Protocol, func(stream network.Stream) { s.handle(stream, s.sendCard) })
	h.SetStreamHandler(NewerProtocol, func(stream network.Stream) { s.handle(stream, s.receiveNewer) })
	return func() {
		h.RemoveStreamHandler(Protocol)
		h.RemoveStreamHandler(NewerProtocol)
	}
}

func (s *server) handle(stream network.Stream, serve func(network.Stream, peer.ID, peer.ID) error) {
	asker := stream.Conn().RemotePeer()
	turn := []quota.Limit{{Group: asker, Most: maxServedPerPeer}, {Most: maxServed}}
	if !s.served.Take(turn...) {
		stream.Reset()
		return
	}
	defer s.served.Release(turn...)
	if serve(stream, stream.Conn().LocalPeer(), asker) != nil {
		stream.Reset()
		return
	}
	stream.Close()
}

func (s *server) sendCard(stream network.Stream, site, asker peer.ID) error {
	if err := stream.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	question := make([]byte, nonceSize+proofSize)
	if _, err := io.ReadFull(stream, question); err != nil {
		return err
	}
	nonce, shown := question[:nonceSize], question[nonceSize:]
	if !hmac.Equal(shown, proof(s.realm, "ask", site, asker, nonce, nil)) {
		return errOtherRealm
	}
	b, err := s.card().write()
	if err != nil {
		return err
	}
	_, err = stream.Write(bytes.Join([][]byte{proof(s.realm, "answer", site, asker, nonce, b), b}, nil))
	return err
}
