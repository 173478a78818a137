package p2p

import (
	"slices"
	"testing"

	"agentsite/node/identity"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// TestConnLimitByAccount: an account with many keys takes no place from another account, and
// a key whose permission has ended is a stranger's.
func TestConnLimitByAccount(t *testing.T) {
	conns, err := newConnManager(false)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	accounts := make(map[identity.ID]string)
	p := newConnLimiter(func(id identity.ID) string { return accounts[id] }, conns, false)
	come := func(account string) *inbound {
		id := identity.New().ID()
		who, err := PeerID(id)
		if err != nil {
			t.Fatal(err)
		}
		if accounts[id] = account; account == "" {
			delete(accounts, id)
		}
		c := &inbound{who: who, closed: make(chan struct{})}
		if ok, _ := p.InterceptUpgraded(c); !ok {
			t.Fatal("it is refused")
		}
		return c
	}
	var honest []*inbound
	for i := range 4 {
		honest = append(honest, come(string(rune('a'+i))))
	}
	open := func(all []*inbound) (n int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range all {
			if p.has(c) {
				n++
			}
		}
		return n
	}
	var hostile []*inbound
	for i := range 4 * maxKnown {
		hostile = append(hostile, come([]string{"eve", "mallory", ""}[i%3]))
	}
	honest = append(honest, come("late"))
	if n := open(honest); n != len(honest) {
		t.Errorf("%d of %d others are still connected", n, len(honest))
	}
	if n := open(hostile); n > maxKnown+maxStrangers {
		t.Errorf("%d of those who come without an end are connected", n)
	}
	clear(accounts)
	come("")
	if n := open(honest) + open(hostile); n > maxKnown+maxStrangers {
		t.Error(n)
	}
	if conns.IsProtected(honest[0].who, "") {
		t.Error("one whose permission has ended is as hard to send away as before")
	}
}

// TestConnLimitInAccount: one whose permission was passed on to it, and who connects without an
// end, takes no place from who passed it on.
func TestConnLimitInAccount(t *testing.T) {
	conns, err := newConnManager(false)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	p := newConnLimiter(func(identity.ID) string { return "ann" }, conns, false)
	peers := make([]peer.ID, 2)
	for i := range peers {
		if peers[i], err = PeerID(identity.New().ID()); err != nil {
			t.Fatal(err)
		}
	}
	come := func(who peer.ID) *inbound {
		c := &inbound{who: who, closed: make(chan struct{})}
		p.InterceptUpgraded(c)
		return c
	}
	ann := come(peers[0])
	for range 4 * maxKnown {
		come(peers[1])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if stays := p.has(ann); !stays || len(p.inbound) > maxKnown {
		t.Errorf("ann is among them: %v; there are %d", stays, len(p.inbound))
	}
}

// has reports whether a connection has its place still. It is called with mu held.
func (p *connLimiter) has(c network.Conn) bool {
	return slices.ContainsFunc(p.inbound, func(have inboundConn) bool { return have.Conn == c })
}
