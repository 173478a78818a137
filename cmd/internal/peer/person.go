package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// Person is a user of sites: this machine's user, or one of the user's agents. Its folder
// has a key, contacts and realms. The methods are safe for concurrent use, also by several
// processes.
type Person struct{ Folder state.Folder }

// agentsFolder contains a folder for each of the user's agents, beside the user's own.
const agentsFolder = "agents"

// User returns this machine's user, who can own sites.
func User() (Person, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Person{}, fmt.Errorf("no folder for your key: %w; set HOME", err)
	}
	return Person{state.Folder(filepath.Join(dir, "agentsite", "owner"))}, nil
}

// PersonNamed returns the user for "", and else the user's agent of that name. It fails where
// there is no such agent.
func PersonNamed(name string) (Person, error) {
	p, err := User()
	if err != nil || name == "" {
		return p, err
	}
	if p, err = p.agent(name); err != nil {
		return p, err
	}
	if _, err := os.Stat(p.Folder.Path(state.KeyFile)); errors.Is(err, fs.ErrNotExist) {
		return p, state.Mistakef("you have no agent %q: agentsite agents allow creates one", name)
	}
	return p, nil
}

// agent returns the user's agent of that name, which may not exist.
func (p Person) agent(name string) (Person, error) {
	if err := device.CheckName(name); err != nil {
		return Person{}, state.Mistakef("an agent needs a name: %w", err)
	}
	return Person{state.Folder(filepath.Join(filepath.Dir(string(p.Folder)), agentsFolder, name))}, nil
}

// Contacts returns the sites that the person knows.
func (p Person) Contacts() Contacts { return Contacts{listFile[Contact]{p.Folder, contactsName}} }

// Realms returns the realms that the person is in.
func (p Person) Realms() Realms { return Realms{listFile[Realm]{p.Folder, realmsName}} }

// Key returns the person's key and creates it where there is none.
func (p Person) Key() (key identity.Key, err error) {
	if key, err = p.Folder.ReadKey(); errors.Is(err, fs.ErrNotExist) {
		err = withLock(p.Folder, lockTimeout, func() error { key, err = p.Folder.KeyLocked(); return err })
	}
	return key, err
}

// Identity describes the person's key, which it creates where there is none.
func (p Person) Identity() (state.Identity, error) {
	key, err := p.Key()
	if err != nil {
		return state.Identity{}, err
	}
	return state.Identity{DID: key.ID().String(), Peer: key.ID().PeerID(), File: p.Folder.Path(state.KeyFile)}, nil
}

// OwnerKey returns the key of this machine's user and creates it where there is none.
func OwnerKey() (identity.Key, error) {
	p, err := User()
	if err != nil {
		return identity.Key{}, err
	}
	return p.Key()
}

// OwnerIdentity describes OwnerKey.
func OwnerIdentity() (state.Identity, error) {
	p, err := User()
	if err != nil {
		return state.Identity{}, err
	}
	return p.Identity()
}

// KnownIdentity is OwnerIdentity for a user with a key, and otherwise zero, as for a service's
// user whose home folder belongs to another.
func KnownIdentity() (state.Identity, error) {
	p, err := User()
	if err != nil {
		return state.Identity{}, nil // without a home folder there is no key
	}
	if _, err := os.Stat(p.Folder.Path(state.KeyFile)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return state.Identity{}, nil
	}
	return p.Identity()
}

// OwnerConfig returns the line of agentsite.yaml that makes an owner's key the site's owner. It
// contains the public key only.
func OwnerConfig(owner state.Identity) string {
	return "# The holder of this key owns the site. The line is public; the private key stays where it is.\n" +
		"owner: " + owner.DID + "\n"
}

// WriteOwnerConfig writes OwnerConfig to a file. It never replaces a file with another content.
func WriteOwnerConfig(file string, owner state.Identity) error {
	text := []byte(OwnerConfig(owner))
	switch now, err := os.ReadFile(file); {
	case err == nil && string(now) == string(text):
		return nil
	case err == nil:
		return state.Mistakef("%s exists and has another content: name another file, or remove it first", file)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
