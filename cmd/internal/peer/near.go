package peer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/discovery"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// nearTime bounds a search for sites that nobody owns; sites answer within a second.
const nearTime = 2 * time.Second

// maxBoards bounds what anybody on the network can have a person see.
const maxBoards = 20

// Near finds the sites on the network that nobody owns. The methods are safe for concurrent use.
type Near struct {
	Version string // of the program

	mu    sync.Mutex
	found map[string]Found // of the last search, by their did:keys
}

// Search returns sites that nobody owns, by their names.
func (n *Near) Search(ctx context.Context) ([]Found, error) {
	n.mu.Lock() // one search is enough at a time
	defer n.mu.Unlock()
	found := make(map[string]Found)
	err := Discover(ctx, DiscoverOptions{For: nearTime, Version: n.Version}, func(c discovery.Change, f Found) {
		if delete(found, f.DID); c != discovery.Gone && f.Unclaimed {
			found[f.DID] = f
		}
	})
	if err != nil {
		return nil, err
	}
	n.found = found
	all := make([]Found, 0, len(found))
	for _, f := range found {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Found) int { return strings.Compare(a.Name+a.DID, b.Name+b.DID) })
	return all[:min(len(all), maxBoards)], nil
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
