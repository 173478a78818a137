package site

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"agentsite/node/identity"
	httpcarrier "agentsite/transport/http"
)

// Identity is who a site or an owner is, for people.
type Identity struct {
	DID  string `json:"did"`
	Peer string `json:"peer"`
	File string `json:"file"` // where its key is
}

// SiteIdentity is that of the folder's site. Its key is made where there is none.
func SiteIdentity(f Folder) (Identity, error) { return identify(f) }

// SiteCertificate is what a client that knows certificates only, and no keys, has to trust
// to reach the folder's site over HTTPS, in PEM. It is no secret, and the same for as long
// as the site has its key, which is made where there is none.
func SiteCertificate(f Folder) (string, error) {
	key, err := f.key()
	if err != nil {
		return "", err
	}
	der, err := httpcarrier.Authority(key)
	if err != nil {
		return "", err
	}
	return certificateText(der), nil
}

func certificateText(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// OwnerIdentity is that of this machine's user as an owner of sites. Its key is made
// where there is none.
func OwnerIdentity() (Identity, error) {
	p, err := User()
	if err != nil {
		return Identity{}, err
	}
	return identify(p.Folder)
}

// KnownIdentity is OwnerIdentity of a user who has a key already, and else zero: so it is for
// a service's user whose home folder is another's.
func KnownIdentity() (Identity, error) {
	p, err := User()
	if err != nil {
		return Identity{}, nil // nobody who could have one
	}
	if _, err := os.Stat(p.path(keyName)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return Identity{}, nil
	}
	return identify(p.Folder)
}

// ownerKey is the key of OwnerIdentity.
func ownerKey() (identity.Key, error) {
	p, err := User()
	if err != nil {
		return identity.Key{}, err
	}
	return p.key()
}

func identify(f Folder) (Identity, error) {
	key, err := f.key()
	if err != nil {
		return Identity{}, err
	}
	return Identity{DID: key.ID().String(), Peer: key.ID().PeerID(), File: f.path(keyName)}, nil
}

const keyName = "key"

// key is the key of whom the folder belongs to, made where there is none. A key that
// is there is never replaced.
func (f Folder) key() (identity.Key, error) {
	key, err := readKey(f.path(keyName))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	unlock, err := f.open() // two who begin at once have one key
	if err != nil {
		return identity.Key{}, err
	}
	defer unlock()
	return f.ownKey()
}

// key is Folder.key for somebody whose commands run side by side.
func (p Person) key() (key identity.Key, err error) {
	if key, err = readKey(p.path(keyName)); errors.Is(err, fs.ErrNotExist) {
		err = p.exclusive(changePatience, func() error { key, err = p.ownKey(); return err })
	}
	return key, err
}

// ownKey is key for who holds the folder.
func (f Folder) ownKey() (identity.Key, error) {
	key, err := readKey(f.path(keyName))
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = identity.New()
	if err := writeAtomic(f.path(keyName), key.PEM(), 0o600); err != nil {
		return identity.Key{}, f.unusable(err)
	}
	return key, nil
}

func readKey(file string) (identity.Key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return identity.Key{}, err
	}
	if readable(info.Mode()) {
		return identity.Key{}, Mistake{fmt.Errorf("others can read the key %s, and who has it is you: run chmod 600 %s", file, Quote(file))}
	}
	if owner, ours := owned(info); !ours {
		return identity.Key{}, Mistake{fmt.Errorf("the key %s belongs to user %d: run this as that user, or give it to yours with chown", file, owner)}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return identity.Key{}, err
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		return identity.Key{}, Mistake{fmt.Errorf("%s: %w; put back the file as it was; without it this is somebody else (delete it for a new identity, which nobody knows yet)", file, err)}
	}
	return key, nil
}

// WriteCard writes the public half of an owner's key as the line of agentsite.yaml
// that makes it the site's owner. A file that says anything else is left alone.
func WriteCard(file string, owner Identity) error {
	card := []byte(Card(owner))
	switch there, err := os.ReadFile(file); {
	case err == nil && string(there) == string(card):
		return nil
	case err == nil:
		return Mistake{fmt.Errorf("%s is there already and says something else: name another file, or remove it first", file)}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return os.WriteFile(file, card, 0o644)
}

// Card is what WriteCard writes.
func Card(owner Identity) string {
	return "# Whose key this is owns the site. Everybody may read this; the key itself stays where it is.\n" +
		"owner: " + owner.DID + "\n"
}
