package dht

import (
	"bytes"
	"errors"
	"fmt"

	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"
)

const (
	maxAnswer    = 512 << 10 // bytes; no honest server sends more
	maxCloser    = 40        // twice what an honest server sends
	maxProviders = 128       // of a key, as honest servers send
)

// decodeAnswer decodes a server's answer. It returns an error for an answer that would crash the
// library, and omits invalid peers.
func decodeAnswer(to *pb.Message, b []byte, self peer.ID) (*pb.Message, error) {
	a := new(pb.Message)
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, a); err != nil {
		return nil, err
	}
	if a.Type != to.Type {
		return nil, fmt.Errorf("the server answers %v to %v", a.Type, to.Type)
	}
	if len(a.CloserPeers) > maxCloser {
		return nil, fmt.Errorf("the server names %d closest peers", len(a.CloserPeers))
	}
	switch a.Type {
	case pb.Message_PUT_VALUE:
		if a.Record == nil || !bytes.Equal(a.Record.Key, to.Key) {
			return nil, errors.New("the server does not return what it stored")
		}
	case pb.Message_GET_VALUE:
		if a.Record != nil && !bytes.Equal(a.Record.Key, to.Key) {
			return nil, errors.New("the server returns the record of another key")
		}
	default:
		a.Record = nil
	}
	wanted := peer.ID("") // may be behind a relay
	if a.Type == pb.Message_FIND_NODE {
		wanted = peer.ID(to.Key)
	}
	a.CloserPeers = validPeers(a.CloserPeers, func(p peer.ID, at ma.Multiaddr) bool { return p != self && (p == wanted || direct(at)) })
	if a.Type == pb.Message_GET_PROVIDERS {
		a.ProviderPeers = validPeers(a.ProviderPeers, func(peer.ID, ma.Multiaddr) bool { return true })
	} else {
		a.ProviderPeers = nil
	}
	return a, nil
}

// validPeers returns the peers with a valid ID, each once, with the allowed addresses.
func validPeers(all []*pb.Message_Peer, may func(peer.ID, ma.Multiaddr) bool) (good []*pb.Message_Peer) {
	seen := make(map[peer.ID]bool)
	for _, p := range all {
		if len(good) >= maxProviders {
			break
		}
		id, err := peer.IDFromBytes(p.GetId())
		if err != nil || seen[id] {
			continue
		}
		seen[id] = true
		var addresses [][]byte
		for _, b := range p.Addrs {
			if len(addresses) >= maxAddresses {
				break
			}
			if len(b) > maxAddress {
				continue
			}
			if a, err := ma.NewMultiaddrBytes(b); err == nil && may(id, a) {
				addresses = append(addresses, b)
			}
		}
		if len(addresses) == 0 && !may(id, nil) {
			continue
		}
		good = append(good, &pb.Message_Peer{Id: p.Id, Addrs: addresses, Connection: p.Connection})
	}
	return good
}
