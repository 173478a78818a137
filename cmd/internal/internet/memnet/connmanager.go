package memnet

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/peer"
)

// connManager protects connections and closes none.
type connManager struct {
	connmgr.NullConnMgr
	mu   sync.Mutex
	tags map[peer.ID]map[string]bool
}

// Protect implements connmgr.ConnManager, as the following do.
func (m *connManager) Protect(p peer.ID, tag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tags == nil {
		m.tags = make(map[peer.ID]map[string]bool)
	}
	if m.tags[p] == nil {
		m.tags[p] = make(map[string]bool)
	}
	m.tags[p][tag] = true
}

func (m *connManager) Unprotect(p peer.ID, tag string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tags[p], tag)
	return len(m.tags[p]) > 0
}

func (m *connManager) IsProtected(p peer.ID, tag string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return tag == "" && len(m.tags[p]) > 0 || m.tags[p][tag]
}
