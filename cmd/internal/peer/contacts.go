package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	ownerclient "agentsite/transport/owner/client"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Person is a user of sites: this machine's user, or one of the user's agents. Each has a
// folder with a key and contacts. Its methods are safe for concurrent use, also by several
// processes.
type Person struct{ state.Folder }

// User returns this machine's user, who can own sites.
func User() (Person, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Person{}, fmt.Errorf("no folder for your key: %w; set HOME", err)
	}
	return Person{state.Folder(filepath.Join(dir, "agentsite", "owner"))}, nil
}

// agent returns the user's agent of that name, which may not exist.
func (p Person) agent(name string) (Person, error) {
	if err := device.CheckName(name); err != nil {
		return Person{}, state.Mistakef("an agent needs a name: %w", err)
	}
	return Person{state.Folder(filepath.Join(filepath.Dir(string(p.Folder)), agentsFolder, name))}, nil
}

// As returns the user for "", and else the user's agent of that name, which has to exist.
func As(name string) (Person, error) {
	p, err := User()
	if err != nil || name == "" {
		return p, err
	}
	if p, err = p.agent(name); err != nil {
		return p, err
	}
	if _, err := os.Stat(p.Path(state.KeyFile)); errors.Is(err, fs.ErrNotExist) {
		return p, state.Mistakef("you have no agent %q: agentsite agents allow makes one", name)
	}
	return p, nil
}

// Contact is a site that a person claimed or has a grant for. Its key is pinned: any other
// key at its addresses is refused.
type Contact struct {
	Name      string   `json:"name"` // by which this user calls it
	DID       string   `json:"did"`
	Addresses []string `json:"addresses"` // host:port, the best first
	Owner     bool     `json:"owner,omitzero"`
	Grant     []byte   `json:"grant,omitzero"` // what its holder may do, where that is not all
}

const (
	knownName    = "sites.json"
	agentsFolder = "agents"

	// Of a site that is known: on networks, and in the world.
	maxNear, maxFar = 8, 6

	// changesName is locked by whoever changes the files beside it, for some milliseconds;
	// changePatience is how long others wait for that, and learnPatience a call, which may
	// be a stop, that has learned where its site is.
	changesName    = "changes.lock"
	changePatience = 10 * time.Second
	learnPatience  = time.Second
)

// Sites lists the person's contacts.
func (p Person) Sites() (all []Contact, err error) {
	file := p.Path(knownName)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the sites that you know cannot be read: %w; mend or remove %s", err, file)
	}
	return all, nil
}

// Known returns the contact of that name.
func (p Person) Known(name string) (Contact, error) {
	all, err := p.Sites()
	if err != nil {
		return Contact{}, err
	}
	return named(all, name)
}

func named(all []Contact, name string) (Contact, error) {
	i := slices.IndexFunc(all, func(k Contact) bool { return k.Name == name })
	if i < 0 {
		return Contact{}, state.Mistakef("you know no site %q: agentsite sites lists those that you claimed or were granted", name)
	}
	return all[i], nil
}

// remember stores a contact, in place of an older one of the same key. It fails where
// another contact has the name.
func (p Person) remember(k Contact) error {
	return p.changeKnown(func(all []Contact) ([]Contact, error) { return with(all, k) })
}

// with returns all with k in place of the contact of that key.
func with(all []Contact, k Contact) ([]Contact, error) {
	if err := unused(all, k.Name, k.DID); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(have Contact) bool { return have.DID == k.DID })
	if i < 0 {
		return append(all, k), nil
	}
	all[i] = k
	return all, nil
}

// moved remembers where a known site was found. Where it was is kept behind that: it may
// be reached there from elsewhere.
func (p Person) moved(did string, at []string) {
	err := p.relocate(did, func(near, far []string) []string {
		at := slices.Clone(at)
		for _, a := range near {
			if !slices.Contains(at, a) && len(at) < maxNear {
				at = append(at, a)
			}
		}
		return append(at, far...)
	})
	if err != nil {
		slog.Warn("where the site is now cannot be remembered", "site", did, "err", err)
	}
}

// learned remembers where in the world a site says that it may be reached.
func (p Person) learned(did string, at []string) {
	_, far := splitAddresses(ownerclient.Addresses(at))
	far = far[:min(len(far), maxFar)]
	if len(far) == 0 {
		return
	}
	if err := p.relocate(did, func(near, _ []string) []string { return append(near, far...) }); err != nil {
		slog.Warn("where the site may be reached cannot be remembered", "site", did, "err", err)
	}
}

// relocate changes the addresses of a site that is still known, and nothing else of it: who
// calls it read the rest when the call began. It waits for nobody where they are the same.
func (p Person) relocate(did string, to func(near, far []string) []string) error {
	change := func(all []Contact) ([]Contact, error) {
		i := slices.IndexFunc(all, func(k Contact) bool { return k.DID == did })
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
	if all, err := p.Sites(); err == nil {
		if all, _ = change(all); all == nil {
			return nil
		}
	}
	return p.exclusive(learnPatience, func() error { return p.rewriteKnown(change) })
}

// Forget removes a contact by its name.
func (p Person) Forget(name string) error {
	return p.changeKnown(func(all []Contact) ([]Contact, error) {
		if _, err := named(all, name); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(all, func(k Contact) bool { return k.Name == name }), nil
	})
}

// changeKnown reads the contacts, calls change and writes its result, under the lock of the
// contacts file. Where change returns nil, nothing is written.
func (p Person) changeKnown(change func(all []Contact) ([]Contact, error)) error {
	return p.exclusive(changePatience, func() error { return p.rewriteKnown(change) })
}

// rewriteKnown is changeKnown within exclusive.
func (p Person) rewriteKnown(change func(all []Contact) ([]Contact, error)) error {
	all, err := p.Sites()
	if err == nil {
		all, err = change(all)
	}
	if err != nil || all == nil {
		return err
	}
	return p.write(knownName, all)
}

// exclusive runs do while nothing else, in this process or another, reads and writes the
// person's files. It waits for its turn, for patience at most.
func (p Person) exclusive(patience time.Duration, do func() error) error {
	if err := os.MkdirAll(string(p.Folder), 0o700); err != nil {
		return err
	}
	lock, err := p.OpenLockFile(changesName)
	if err != nil {
		return err
	}
	defer lock.Close()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if err = state.TryLock(lock); err == nil {
			return do()
		}
		if time.Since(begun) >= patience {
			return fmt.Errorf("%s is held by another process: %w", lock.Name(), err)
		}
	}
}

// write replaces a file, within exclusive.
func (p Person) write(name string, what any) error {
	text, err := json.Marshal(what, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return state.WriteAtomic(p.Path(name), append(text, '\n'), 0o600)
}

// named is a site that the person knows by its name or by its key, or one of which only
// the key is known.
func (p Person) named(name, peer string) (Contact, error) {
	id, err := identity.Parse(peer)
	if err != nil && name == "" {
		return Contact{}, state.Mistake{Err: err}
	}
	if err != nil || peer == "" {
		return p.Known(name)
	}
	k, err := p.knownBy(id.String())
	k.DID = id.String()
	return k, err
}

// Called is by which name the user, or an agent of the user's, knows the site of a key;
// "" for none.
func Called(agent, peer string) (string, error) {
	p, err := As(agent)
	if err != nil {
		return "", err
	}
	k, err := p.named("", peer)
	return k.Name, err
}

// knownBy finds a site by its key; a zero one where it is not known.
func (p Person) knownBy(did string) (Contact, error) {
	all, err := p.Sites()
	i := slices.IndexFunc(all, func(k Contact) bool { return k.DID == did })
	if i < 0 {
		return Contact{}, err
	}
	return all[i], err
}

// Owned notes that the person has become the owner of a known site; "" is none.
func (p Person) Owned(name string) error {
	if name == "" {
		return nil
	}
	return p.changeKnown(func(all []Contact) ([]Contact, error) {
		k, err := named(all, name)
		if err != nil {
			return nil, err
		}
		k.Owner, k.Grant = true, nil
		return with(all, k)
	})
}

// May are the words of what was granted, "" for all.
func (k Contact) May() (words string, until time.Time) {
	if g, err := access.ParseGrant(k.Grant); err == nil {
		return g.Words(), g.Until()
	}
	return "", time.Time{}
}
