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
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
)

const (
	// maxProbes bounds the concurrent ownership probes, and probeTimeout each of them.
	maxProbes    = 8
	probeTimeout = 2 * time.Second

	// adoptTimeout bounds the search for a site that the user owns and that is no contact yet.
	adoptTimeout = 2 * time.Second
)

// ownershipProbe asks sites that are no contacts whether they have the person as an owner.
type ownershipProbe struct {
	key     *identity.Key // nil for a person without a key, who owns nothing
	version string
	slots   chan struct{}
	probes  sync.WaitGroup
}

func newOwnershipProbe(p Person, version string) *ownershipProbe {
	o := &ownershipProbe{version: version, slots: make(chan struct{}, maxProbes)}
	if key, err := p.Folder.ReadKey(); err == nil {
		o.key = &key
	} else if !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("owned sites cannot be recognised", "err", err)
	}
	return o
}

// start probes a site in the background, and calls found if it lists the key as an owner, or takes a claim because
// nobody owns it. probes waits for all.
func (o *ownershipProbe) start(ctx context.Context, s discovery.Site, found func(yours bool)) {
	if o.key == nil {
		return
	}
	at := authorities(s.URLs())
	o.probes.Go(func() {
		select {
		case o.slots <- struct{}{}:
			defer func() { <-o.slots }()
		case <-ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		c, w, err := newSession(*o.key, s.Site, func() []string { return at }, nil, rpc.JSON, nil, o.version)
		if err != nil {
			return
		}
		defer w.near.HTTP.CloseIdleConnections()
		me := o.key.ID().String()
		site := ownerclient.New(c, s.Site, "")
		all, err := site.Access(ctx)
		if err == nil && slices.ContainsFunc(all.Owners, func(w acts.Owner) bool { return w.DID == me }) {
			found(true)
		} else if errors.As(err, new(*client.RequestError)) {
			if _, err := ownerclient.Call(ctx, site, owner.ChallengeMethod, acts.None{}); err == nil {
				found(false)
			}
		}
	})
}

// adopt finds the only site on the network that has the name and lists the person as an
// owner, and stores it as a contact. A name proves nothing: of two such sites it stores neither.
func (p Person) adopt(ctx context.Context, name, version string) (Contact, error) {
	mine := make(map[string]Found)
	if device.CheckName(name) == nil {
		err := Discover(ctx, DiscoverOptions{For: adoptTimeout, Name: name, Version: version}, func(c discovery.Change, f Found) {
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
			return k, p.Contacts().store(k)
		}
	}
	if len(keys) == 0 {
		return Contact{}, state.Mistakef("you know no site %q and own none of that name on this network: agentsite sites lists the sites that you own or may use, agentsite discover those on this network", name)
	}
	slices.Sort(keys)
	return Contact{}, state.Mistakef("several sites on this network are called %s and say that you own them: compare their keys with agentsite identity on the board, and claim yours by its key (%s)", name, strings.Join(keys, ", "))
}

// DescribeSite describes the site with a key: the one of a data folder, or a contact; "" for
// an unknown key.
func DescribeSite(did string, f state.Folder) (string, error) {
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
	k, err := user.Contacts().byKey(id.String())
	if k.Name == "" {
		return "", err
	}
	return "the site " + k.Name, nil
}

// find returns the contact of that name, or, for the user, adopts a site of that name.
func (p Person) find(ctx context.Context, name, version string, progress func(string)) (Contact, error) {
	known, err := p.Contacts().Get(name)
	user, failed := User()
	if err == nil || failed != nil || p != user {
		return known, err
	}
	if _, none := p.Folder.ReadKey(); errors.Is(none, fs.ErrNotExist) {
		return known, err // without a key the user owns nothing
	}
	k, err := p.adopt(ctx, name, version)
	if err == nil && progress != nil {
		progress(fmt.Sprintf("you own %s on this network: it is stored now, with the key %s", k.Name, k.DID))
	}
	return k, err
}

// findInvitation parses an invitation address, or looks up a key or a name on this network.
func (p Person) findInvitation(ctx context.Context, text, version string) (access.Invitation, error) {
	text = strings.TrimSpace(text)
	if id, err := identity.Parse(text); err == nil {
		k, err := p.Contacts().byKey(id.String())
		return access.Invitation{Site: id, Addresses: k.Addresses}, err
	}
	if device.CheckName(text) != nil {
		i, err := access.ParseInvitation(text)
		if err != nil {
			err = state.Mistake{Err: err}
		}
		return i, err
	}
	k, err := p.Contacts().Get(text)
	if err != nil {
		k, err = p.adopt(ctx, text, version)
	}
	if err != nil {
		return access.Invitation{}, err
	}
	id, err := identity.Parse(k.DID)
	return access.Invitation{Site: id, Addresses: k.Addresses}, err
}
