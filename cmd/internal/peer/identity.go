package peer

import (
	"errors"
	"io/fs"
	"os"

	"agentsite/node/identity"
	"agentsite/node/state"
)

// OwnerIdentity returns this machine's user as an owner of sites. It creates the key where
// there is none.
func OwnerIdentity() (state.Identity, error) {
	p, err := User()
	if err != nil {
		return state.Identity{}, err
	}
	return p.Folder.Identity()
}

// KnownIdentity is OwnerIdentity for a user with a key, and otherwise zero, as for a service's
// user whose home folder belongs to another.
func KnownIdentity() (state.Identity, error) {
	p, err := User()
	if err != nil {
		return state.Identity{}, nil // nobody who could have one
	}
	if _, err := os.Stat(p.Path(state.KeyFile)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return state.Identity{}, nil
	}
	return p.Folder.Identity()
}

// OwnerKey returns the key of OwnerIdentity.
func OwnerKey() (identity.Key, error) {
	p, err := User()
	if err != nil {
		return identity.Key{}, err
	}
	return p.key()
}

// key is Folder.Key, safe for commands that run side by side.
func (p Person) key() (key identity.Key, err error) {
	if key, err = p.ReadKey(); errors.Is(err, fs.ErrNotExist) {
		err = p.exclusive(changePatience, func() error { key, err = p.KeyLocked(); return err })
	}
	return key, err
}

// WriteCard writes the public half of an owner's key as the line of agentsite.yaml
// that makes it the site's owner. A file that says anything else is left alone.
func WriteCard(file string, owner state.Identity) error {
	card := []byte(Card(owner))
	switch there, err := os.ReadFile(file); {
	case err == nil && string(there) == string(card):
		return nil
	case err == nil:
		return state.Mistakef("%s is there already and says something else: name another file, or remove it first", file)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.WriteFile(file, card, 0o644)
}

// Card is what WriteCard writes.
func Card(owner state.Identity) string {
	return "# Whose key this is owns the site. Everybody may read this; the key itself stays where it is.\n" +
		"owner: " + owner.DID + "\n"
}
