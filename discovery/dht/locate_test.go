package dht

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentsite/node/identity"

	ma "github.com/multiformats/go-multiaddr"
)

// TestLocateAmongSilent: an address that one known server names is there at once, also while the
// other known servers do not answer.
func TestLocateAmongSilent(t *testing.T) {
	n := newNet(t, 1)
	home := realm(t, "home")
	site := n.site(home)
	for range 5 {
		n.known = append(n.known, hostileServers(t, []identity.Key{identity.New()}, n.servers[0])[0]) // the first is silent
	}
	n.patience = time.Minute
	at := func(all []ma.Multiaddr) bool {
		return slices.ContainsFunc(all, func(a ma.Multiaddr) bool { return ma.Contains(site.host.Addrs(), a) })
	}
	for name, locate := range map[string]func(context.Context, *node) bool{
		"Locate": func(ctx context.Context, looks *node) (ok bool) {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			_ = looks.Locate(ctx, site.key.ID(), func(some []ma.Multiaddr) {
				if at(some) {
					ok = true
					stop()
				}
			})
			return ok
		},
		"QuickLocate": func(ctx context.Context, looks *node) bool {
			who, err := looks.QuickLocate(ctx, site.key.ID())
			return err == nil && at(who.Addrs)
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), locateTimeout/2)
		if !locate(ctx, n.open(identity.New(), Options{Realm: home})) {
			t.Errorf("%s does not find it in time", name)
		}
		cancel()
	}
}
