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

// Protocol requests a site's card. The requester sends a nonce and a proof that it knows the realm,
// and receives a proof and the card. Both proofs are bound to the two peers and the nonce.
const Protocol protocol.ID = "/agentsite/card/1"

const (
	timeout = 5 * time.Second

	// Strangers, with sixteen connections, cannot use all slots. There is no limit by
	// network: all peers that come through one relay share one, whose connections are limited
	// elsewhere.
	maxServed        = 64
	maxServedPerPeer = 3

	nonceSize = 16
	proofSize = 32
)

// proof proves knowledge of the realm. what separates requests from answers.
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

// Serve sends the site's current card to members of the realm that request it, until stop.
// Others learn nothing, not even whether there is one. card and newer are called
// concurrently; newer receives records that the site itself has signed.
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
