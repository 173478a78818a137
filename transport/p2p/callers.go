package p2p

import (
	"context"
	"io"
	"slices"
	"time"

	"agentsite/node/quota"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"
)

// callersProtocol reports the peer ID of a known caller of a site to a relay. A relay does not
// know the sites' callers otherwise, and needs that to choose when there are too many.
const callersProtocol protocol.ID = "/agentsite/callers/1"

const maxPeerID = 64 // bytes

// reportCaller tells a relay that a caller through it is known, and reports whether the relay
// accepted that: relays of other programs do not. It blocks for seconds at most.
func (h *Host) reportCaller(relay, caller peer.ID) bool {
	ctx, cancel := context.WithTimeout(network.WithNoDial(context.Background(), limitedReason), relayTimeout)
	defer cancel()
	s, err := h.NewStream(ctx, relay, callersProtocol)
	if err != nil {
		return false
	}
	defer s.Reset()
	s.SetDeadline(time.Now().Add(relayTimeout))
	if _, err = io.WriteString(s, string(caller)); err == nil && s.CloseWrite() == nil {
		_, err = s.Read(make([]byte, 1)) // until it is taken
	}
	return err == io.EOF
}

// receiveCaller stores a caller that a site with a reservation knows. It ignores other sites.
func (c *circuits) receiveCaller(s network.Stream) {
	defer s.Reset()
	site := s.Conn().RemotePeer()
	turn := quota.Limit{Group: callerReports{site}, Most: 4}
	if !c.held.Take(turn) {
		return
	}
	defer c.held.Release(turn)
	s.SetReadDeadline(time.Now().Add(relayTimeout))
	b, err := io.ReadAll(io.LimitReader(s, maxPeerID+1))
	caller, bad := peer.IDFromBytes(b)
	if err != nil || bad != nil || len(b) > maxPeerID {
		return
	}
	c.mu.Lock()
	if p := c.reservations[site]; p != nil && p.active {
		p.callers = append(slices.DeleteFunc(p.callers, func(have peer.ID) bool { return have == caller }), caller)
		p.callers = p.callers[max(0, len(p.callers)-maxCallers):]
	}
	c.mu.Unlock()
	s.Close()
}

// relayOf returns the relay that an address leads through, or "".
func relayOf(a ma.Multiaddr) peer.ID {
	if !IsRelayed(a) {
		return ""
	}
	text, _ := a.ValueForProtocol(ma.P_P2P) // the first is the relay's
	relay, _ := peer.Decode(text)
	return relay
}
