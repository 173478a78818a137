package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/discovery"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
)

const (
	// A site that is found is asked whose it is: so many at a time, and each for so long.
	ownershipAtOnce   = 8
	ownershipPatience = 2 * time.Second

	// adoptPatience is how long a site of the user's is looked for that is not known yet.
	adoptPatience = 2 * time.Second
)

// ownershipProbe asks sites that are no contacts whether they have the person as an owner.
type ownershipProbe struct {
	key     *identity.Key // nil for somebody without one, who owns nothing
	version string
	places  chan struct{}
	asking  sync.WaitGroup
}

func newOwnershipProbe(p Person, version string) *ownershipProbe {
	o := &ownershipProbe{version: version, places: make(chan struct{}, ownershipAtOnce)}
	if key, err := p.ReadKey(); err == nil {
		o.key = &key
	} else if !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("which of these sites are yours is not known", "err", err)
	}
	return o
}

// ask asks in the background and calls yes where the site says so. asking waits for all.
func (o *ownershipProbe) ask(ctx context.Context, s discovery.Site, yes func()) {
	if o.key == nil {
		return
	}
	at := authorities(s.URLs())
	o.asking.Go(func() {
		select {
		case o.places <- struct{}{}:
			defer func() { <-o.places }()
		case <-ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(ctx, ownershipPatience)
		defer cancel()
		c, w, err := newSession(*o.key, s.Site, func() []string { return at }, nil, rpc.JSON, nil, o.version)
		if err != nil {
			return
		}
		defer w.near.HTTP.CloseIdleConnections()
		me := o.key.ID().String()
		all, err := ownerclient.New(c, s.Site, "").Access(ctx)
		if err == nil && slices.ContainsFunc(all.Owners, func(w owner.Owner) bool { return w.DID == me }) {
			yes()
		}
	})
}

// adopt finds the only site on the network that calls itself so and says that the person
// owns it, and remembers it by that name and its key. Nothing proves a name: where two
// say so, neither is taken.
func (p Person) adopt(ctx context.Context, name, version string) (Contact, error) {
	mine := make(map[string]Found)
	if device.CheckName(name) == nil {
		err := Discover(ctx, DiscoverOptions{For: adoptPatience, Name: name, Version: version}, func(c discovery.Change, f Found) {
			if delete(mine, f.DID); f.Yours && c != discovery.Gone {
				mine[f.DID] = f
			}
		})
		if err != nil {
			return Contact{}, err
		}
	}
	var keys []string
	for did, f := range mine {
		keys = append(keys, did)
		if len(mine) == 1 {
			k := Contact{Name: name, DID: did, Addresses: authorities(f.URLs), Owner: true}
			return k, p.remember(k)
		}
	}
	if len(keys) == 0 {
		return Contact{}, state.Mistakef("you know no site %q, and own none of that name on this network: agentsite sites lists those that you claimed or were granted, agentsite discover those that are here", name)
	}
	slices.Sort(keys)
	return Contact{}, state.Mistakef("several sites here call themselves %s and say that you own them: look which is yours, and take it over by its key with agentsite claim (%s)", name, strings.Join(keys, ", "))
}

// SiteOf names the site that has a key, as far as this machine knows: the one that runs
// from a folder, or one that the user claimed or was granted; "" for none.
func SiteOf(did string, f state.Folder) (string, error) {
	id, err := identity.Parse(did)
	if err != nil {
		return "", state.Mistake{Err: err}
	}
	if key, err := f.ReadKey(); err == nil && key.ID() == id {
		return "the site on this machine", nil
	}
	user, err := User()
	if err != nil {
		return "", err
	}
	k, err := user.knownBy(id.String())
	if k.Name == "" {
		return "", err
	}
	return "the site " + k.Name, nil
}

// find returns the contact of that name, or, for the user, adopts a site of that name.
func (p Person) find(ctx context.Context, name, version string, tell func(string)) (Contact, error) {
	known, err := p.Known(name)
	user, failed := User()
	if err == nil || failed != nil || p != user {
		return known, err
	}
	if _, none := p.ReadKey(); errors.Is(none, fs.ErrNotExist) {
		return known, err // who has no key owns nothing
	}
	k, err := p.adopt(ctx, name, version)
	if err == nil && tell != nil {
		tell(fmt.Sprintf("%s on this network is yours: it is known here from now on, by the key %s", k.Name, k.DID))
	}
	return k, err
}

// invitation reads an address that a site shows, a key, or a name on this network.
func (p Person) invitation(ctx context.Context, text, version string) (access.Invitation, error) {
	text = strings.TrimSpace(text)
	if id, err := identity.Parse(text); err == nil {
		k, err := p.knownBy(id.String())
		return access.Invitation{Site: id, Addresses: k.Addresses}, err
	}
	if device.CheckName(text) != nil {
		i, err := access.ParseInvitation(text)
		if err != nil {
			err = state.Mistake{Err: err}
		}
		return i, err
	}
	k, err := p.Known(text)
	if err != nil {
		k, err = p.adopt(ctx, text, version)
	}
	if err != nil {
		return access.Invitation{}, err
	}
	id, err := identity.Parse(k.DID)
	return access.Invitation{Site: id, Addresses: k.Addresses}, err
}
