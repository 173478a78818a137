package lan

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxNames  = 64
	maxCached = time.Minute
)

// names is the cache of the process: a name of the network is the same for all devices.
var names cache

// cache holds the addresses of names.
type cache struct {
	mu    sync.Mutex
	known map[string]cached
}

type cached struct {
	addrs []netip.Addr
	until time.Time
}

// get returns a copy of a name's addresses; nil for none.
func (c *cache) get(host string) []netip.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.known[strings.ToLower(host)]
	if !time.Now().Before(k.until) {
		return nil
	}
	return slices.Clone(k.addrs)
}

func (c *cache) put(host string, addrs []netip.Addr, ttl time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.known, func(_ string, k cached) bool { return !now.Before(k.until) })
	if c.known == nil {
		c.known = make(map[string]cached)
	}
	if len(c.known) < maxNames {
		c.known[strings.ToLower(host)] = cached{slices.Clone(addrs), now.Add(min(ttl, maxCached))}
	}
}

func (c *cache) forget(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, strings.ToLower(host))
}
