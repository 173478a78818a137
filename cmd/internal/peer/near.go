package peer

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"

	"golang.org/x/sync/singleflight"
)

// nearTime bounds a search for sites that nobody owns; sites answer within a second.
const nearTime = 2 * time.Second

// maxBoards bounds what anybody on the network can have a person see.
const maxBoards = 20

// Near finds the sites on the network that nobody owns. The methods are safe for concurrent use.
type Near struct {
	Version string // of the program

	discover func(context.Context, DiscoverOptions, func(discovery.Change, Found)) error // nil for Discover
	searches singleflight.Group

	mu    sync.Mutex
	found map[string]Found // of the last search, by their did:keys
}

// Search returns sites that nobody owns, by their names. Of more than maxBoards it takes one of each address before a
// second of any. All who ask during a search get its answer, which does not end with one of them.
func (n *Near) Search(ctx context.Context) ([]Found, error) {
	search := n.searches.DoChan("", func() (any, error) { return n.search(context.WithoutCancel(ctx)) })
	select {
	case r := <-search:
		all, _ := r.Val.([]Found)
		return all, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *Near) search(ctx context.Context) ([]Found, error) {
	discover := n.discover
	if discover == nil {
		discover = Discover
	}
	found := make(map[string]Found)
	err := discover(ctx, DiscoverOptions{For: nearTime, Version: n.Version}, func(c discovery.Change, f Found) {
		if delete(found, f.DID); c != discovery.Gone && f.Unclaimed {
			found[f.DID] = f
		}
	})
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.found = found
	n.mu.Unlock()
	byName := func(a, b Found) int { return strings.Compare(a.Name+a.DID, b.Name+b.DID) }
	all := slices.SortedFunc(maps.Values(found), byName)
	all = fairly(all)[:min(len(all), maxBoards)]
	slices.SortFunc(all, byName)
	return all, nil
}

// fairly puts the first site of each address before the second of any.
func fairly(all []Found) []Found {
	nth, of := make(map[string]int), make(map[string]int) // by did:key, and of an address
	for _, f := range all {
		host := ""
		if len(f.URLs) > 0 {
			at, _ := url.Parse(f.URLs[0])
			host = cmp.Or(at, new(url.URL)).Hostname()
		}
		nth[f.DID] = of[host]
		of[host]++
	}
	slices.SortStableFunc(all, func(a, b Found) int { return nth[a.DID] - nth[b.DID] })
	return all
}

// Invitation returns the invitation that a person copied from a site: the whole line that it shows, or for the
// site that a search found, "" for none, the secret in it.
func (n *Near) Invitation(did, words string) (access.Invitation, error) {
	n.mu.Lock()
	f, known := n.found[did]
	n.mu.Unlock()
	words = strings.TrimSpace(words)
	if at := strings.Index(words, "agentsite://"); at >= 0 {
		i, err := access.ParseInvitation(words[at:])
		switch {
		case err != nil:
			return i, state.Mistake{Err: err}
		case i.Secret == access.ClaimSecret{}:
			return i, state.Mistakef("this address has no secret: copy the whole line that the site shows")
		case known && i.Site.String() != did:
			return i, state.Mistakef("this is the line of another site, with the key %v", i.Site)
		}
		return i, nil
	}
	if !known {
		return access.Invitation{}, state.Mistakef("copy the whole line that the site shows, from agentsite:// on")
	}
	secret, err := access.ParseSecret(words)
	if err != nil {
		return access.Invitation{}, state.Mistake{Err: err}
	}
	id, err := identity.Parse(did)
	return access.Invitation{Site: id, Secret: secret, Addresses: authorities(f.URLs)}, err
}
