package memnet

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

const (
	// maxDistance is the delay of the longest way, without the access networks at its ends.
	maxDistance          = 100 * time.Millisecond
	minAccess, maxAccess = time.Millisecond, 15 * time.Millisecond

	// A lost packet is sent again after resendDelay, and a lost first packet of a connection after redialDelay.
	resendDelay, redialDelay = 200 * time.Millisecond, time.Second

	// A host notices within these that another one has lost its power: a site renews its reservations in turn,
	// and QUIC keeps connections alive.
	minSilence, maxSilence = 4 * time.Second, 30 * time.Second

	// As package p2p does, hosts close connections that they opened and do not use.
	idleInterval, idleGrace = 10 * time.Second, 30 * time.Second

	dialTimeout = 5 * time.Second // of a host that does not answer
)

// Network is a network in memory. It is safe for concurrent use.
type Network struct {
	loss       float64
	background protocol.ID

	mu    sync.Mutex
	hosts map[peer.ID]*Host
}

// New returns a network that loses a share of all packets. Streams of the protocol background keep no
// connection open.
func New(loss float64, background protocol.ID) *Network {
	return &Network{loss: loss, background: background, hosts: make(map[peer.ID]*Host)}
}

// Run closes idle connections until ctx ends.
func (n *Network) Run(ctx context.Context) {
	every := time.NewTicker(idleInterval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		for _, h := range n.all() {
			h.closeIdle(time.Now())
		}
	}
}

func (n *Network) all() (hosts []*Host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		hosts = append(hosts, h)
	}
	return hosts
}

func (n *Network) host(p peer.ID) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[p]
}

// lost reports whether a packet is lost.
func (n *Network) lost() bool { return rand.Float64() < n.loss }

// place is the position of a host: on a plane, behind an access network.
type place struct {
	x, y   float64
	access time.Duration
}

func newPlace() place {
	return place{rand.Float64(), rand.Float64(), minAccess + rand.N(maxAccess-minAccess)}
}

// Traffic counts what a host has exchanged by one protocol.
type Traffic struct{ Messages, Sent, Received int64 }

// Usage is a host's traffic and connections since it was made.
type Usage struct {
	Traffic     map[protocol.ID]Traffic
	Dialled     int64 // connections that it opened
	Accepted    int64 // connections that others opened to it
	Circuits    int64 // connections of others that it relayed
	Relayed     int64 // bytes of those, counted once
	Connections int   // now
}

var _ network.Network = (*swarm)(nil)
