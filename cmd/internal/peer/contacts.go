package peer

import (
	"log/slog"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"
)

// Contact is a site that a person claimed or has a grant for. Its key is pinned: any other
// key at its addresses is refused.
type Contact struct {
	Name      string   `json:"name"` // by which the person calls it
	DID       string   `json:"did"`
	Addresses []string `json:"addresses"` // host:port and multiaddrs, the best first
	Owner     bool     `json:"owner,omitzero"`
	Grant     []byte   `json:"grant,omitzero"` // of the person's permission; empty for an owner
	Tags      []string `json:"tags,omitzero"`  // by which the person selects sites; the site does not know them
}

// Permission returns the granted permission in words and when it ends, "" for an owner's.
func (k Contact) Permission() (words string, until time.Time) {
	if g, err := access.ParseGrant(k.Grant); err == nil {
		return g.Words(), g.Until()
	}
	return "", time.Time{}
}

const (
	contactsName = state.SitesFile

	// The addresses that are stored of a site: on networks, and multiaddrs.
	maxNear, maxFar = 8, 6
)

// Contacts are the sites that a person knows.
type Contacts struct{ listFile[Contact] }

// Get returns the contact of that name.
func (c Contacts) Get(name string) (Contact, error) {
	all, err := c.List()
	if err != nil {
		return Contact{}, err
	}
	i, err := indexNamed(all, name)
	if err != nil {
		return Contact{}, err
	}
	return all[i], nil
}

// byKey returns the contact with that did:key, the zero one where there is none.
func (c Contacts) byKey(did string) (Contact, error) {
	all, err := c.List()
	if i := indexKey(all, did); i >= 0 {
		return all[i], err
	}
	return Contact{}, err
}

// lookup returns the contact with a name, or with a key, which is a peer ID or did:key; the
// key need not be a contact's.
func (c Contacts) lookup(name, key string) (Contact, error) {
	id, err := identity.Parse(key)
	if err != nil && name == "" {
		return Contact{}, state.Mistake{Err: err}
	}
	if err != nil || key == "" {
		return c.Get(name)
	}
	k, err := c.byKey(id.String())
	k.DID = id.String()
	return k, err
}

// Forget removes the contact of that name.
func (c Contacts) Forget(name string) error {
	return c.change(lockTimeout, func(all []Contact) ([]Contact, error) {
		i, err := indexNamed(all, name)
		if err != nil {
			return nil, err
		}
		return slices.Delete(all, i, i+1), nil
	})
}

// SetOwned records that the person became the owner of the contact of that name; "" is none.
func (c Contacts) SetOwned(name string) error {
	if name == "" {
		return nil
	}
	return c.change(lockTimeout, func(all []Contact) ([]Contact, error) {
		i, err := indexNamed(all, name)
		if err != nil {
			return nil, err
		}
		all[i].Owner, all[i].Grant = true, nil
		return all, nil
	})
}

// maxTags bounds the tags of a contact.
const maxTags = 16

// Tag adds tags to the contact of that name, or with remove takes them away, and returns the contact.
func (c Contacts) Tag(name string, tags []string, remove bool) (k Contact, err error) {
	for _, t := range tags {
		if err := device.CheckName(t); err != nil {
			return k, state.Mistakef("a tag is a name: %w", err)
		}
	}
	err = c.change(lockTimeout, func(all []Contact) ([]Contact, error) {
		i, err := indexNamed(all, name)
		if err != nil {
			return nil, err
		}
		now := slices.DeleteFunc(slices.Clone(all[i].Tags), func(t string) bool { return slices.Contains(tags, t) })
		if !remove {
			now = slices.Compact(slices.Sorted(slices.Values(append(now, tags...))))
		}
		if len(now) > maxTags {
			return nil, state.Mistakef("%s would have %d tags, and a site has at most %d", name, len(now), maxTags)
		}
		all[i].Tags = now
		k = all[i]
		return all, nil
	})
	return k, err
}

// store adds a contact, in place of an older one of the same key. It fails where another
// contact has the name.
func (c Contacts) store(k Contact) error {
	return c.change(lockTimeout, func(all []Contact) ([]Contact, error) { return withContact(all, k) })
}

// withContact returns all with k in place of the contact of the same key, whose tags it keeps.
func withContact(all []Contact, k Contact) ([]Contact, error) {
	if err := checkUnused(all, k.Name, k.DID); err != nil {
		return nil, err
	}
	i := indexKey(all, k.DID)
	if i < 0 {
		return append(all, k), nil
	}
	k.Tags = all[i].Tags
	all[i] = k
	return all, nil
}

func indexNamed(all []Contact, name string) (int, error) {
	i := slices.IndexFunc(all, func(k Contact) bool { return k.Name == name })
	if i < 0 {
		return i, state.Mistakef("you know no site %q: agentsite sites lists the sites that you own or may use", name)
	}
	return i, nil
}

func indexKey(all []Contact, did string) int {
	return slices.IndexFunc(all, func(k Contact) bool { return k.DID == did })
}

// updateNear stores where a contact was found on a network. Older addresses are kept behind
// that: the site may be there again on another network.
func (c Contacts) updateNear(did string, at []string) {
	c.updateAddresses(did, func(near, far []string) []string {
		at := slices.Clone(at)
		for _, a := range near {
			if !slices.Contains(at, a) && len(at) < maxNear {
				at = append(at, a)
			}
		}
		return append(at, far...)
	})
}

// updateFar stores the multiaddrs by which a contact says that it can be reached.
func (c Contacts) updateFar(did string, at []string) {
	_, far := splitAddresses(ownerclient.Addresses(at))
	if far = far[:min(len(far), maxFar)]; len(far) > 0 {
		c.updateAddresses(did, func(near, _ []string) []string { return append(near, far...) })
	}
}

// updateAddresses changes the addresses of a site that is still a contact. Its other fields may
// have changed since the caller read it and stay. It takes no lock if they are unchanged.
func (c Contacts) updateAddresses(did string, to func(near, far []string) []string) {
	edit := func(all []Contact) ([]Contact, error) {
		i := indexKey(all, did)
		if i < 0 {
			return nil, nil
		}
		at := to(splitAddresses(all[i].Addresses))
		if slices.Equal(at, all[i].Addresses) {
			return nil, nil
		}
		all[i].Addresses = at
		return all, nil
	}
	if all, err := c.List(); err == nil {
		if all, _ = edit(all); all == nil {
			return
		}
	}
	writer, _ := writers.LoadOrStore(c.folder, newBatchWriter())
	err := writer.(*batchWriter).write(edit, func(edit func([]Contact) ([]Contact, error)) error {
		return c.change(updateTimeout, edit)
	})
	if err != nil {
		slog.Warn("the site's addresses cannot be stored", "site", did, "err", err)
	}
}

// ContactName returns the name by which the user, or the named agent, knows the site with a
// key, "" for none.
func ContactName(agent, key string) (string, error) {
	p, err := PersonNamed(agent)
	if err != nil {
		return "", err
	}
	k, err := p.Contacts().lookup("", key)
	return k.Name, err
}
