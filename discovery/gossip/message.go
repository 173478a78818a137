package gossip

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"agentsite/discovery"
	"agentsite/node/identity"
)

const (
	version    = 1
	maxMessage = 256 // bytes, without pubsub's envelope

	topics = "/agentsite/gossip/1/"
)

// kind is the type of a message.
type kind uint8

const (
	alive   kind = 1 + iota // its origin is a site, with this record
	goodbye                 // its origin stops
	query                   // its origin asks all sites to answer with alive
)

// message is the payload that pubsub's signed envelope carries from its origin.
type message struct {
	Version  uint8             `cbor:"1,keyasint"`
	Kind     kind              `cbor:"2,keyasint"`
	Sequence uint64            `cbor:"3,keyasint"` // of the site's record; 0 for look
	Digest   [sha256.Size]byte `cbor:"4,keyasint,omitzero"`
	MAC      [sha256.Size]byte `cbor:"5,keyasint,omitzero"` // over the other fields, with the realm's secret
}

var form = identity.NewCodec(4)

// topicOf returns the topic of a realm.
func topicOf(r discovery.Realm) string {
	name := r.Hash("gossip")
	return topics + hex.EncodeToString(name[:])
}

// isTopic reports whether a topic may be that of a realm.
func isTopic(topic string) bool {
	name, ok := strings.CutPrefix(topic, topics)
	b, err := hex.DecodeString(name)
	return ok && err == nil && len(b) == sha256.Size && name == strings.ToLower(name)
}

// seal encodes a message with its MAC.
func (m message) seal(r discovery.Realm, origin identity.ID) []byte {
	m.Version = version
	m.MAC = m.mac(r, origin)
	return m.encode()
}

func (m message) mac(r discovery.Realm, origin identity.ID) [sha256.Size]byte {
	m.MAC = [sha256.Size]byte{}
	return r.Hash("gossip message", origin.PeerID(), string(m.encode()))
}

func (m message) encode() []byte {
	b, err := form.Encode(m)
	if err != nil {
		panic(err) // numbers and strings of bytes can be written
	}
	return b
}

// decode parses a message and verifies its MAC.
func decode(r discovery.Realm, origin identity.ID, b []byte) (m message, err error) {
	if len(b) > maxMessage {
		return m, fmt.Errorf("a message of %d bytes is longer than %d", len(b), maxMessage)
	}
	if err := form.Decode(b, &m); err != nil {
		return m, err
	}
	proof := m.mac(r, origin)
	switch {
	case m.Version != version:
		return m, errors.New("a message of a version that needs a newer agentsite")
	case m.Kind < alive || m.Kind > query || (m.Sequence == 0) != (m.Kind == query):
		return m, errors.New("a message of an unknown kind")
	case !hmac.Equal(m.MAC[:], proof[:]):
		return m, errors.New("the message's origin does not know the realm")
	}
	return m, nil
}
