package state

import (
	"errors"
	"io/fs"
	"os"

	"agentsite/node/identity"
)

// Identity describes the key of a folder, for people.
type Identity struct {
	DID  string `json:"did"`
	Peer string `json:"peer"`
	File string `json:"file"` // where the key is
}

// Identity returns the identity of the folder's key and creates the key where there is none.
func (f Folder) Identity() (Identity, error) {
	key, err := f.Key()
	if err != nil {
		return Identity{}, err
	}
	return Identity{DID: key.ID().String(), Peer: key.ID().PeerID(), File: f.Path(KeyFile)}, nil
}

// Key returns the folder's key. It creates one where there is none, which fails with InUse
// while another process holds the folder; it never replaces a key.
func (f Folder) Key() (identity.Key, error) {
	key, err := f.ReadKey()
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	unlock, err := f.Lock() // two processes that start at once get one key
	if err != nil {
		return identity.Key{}, err
	}
	defer unlock()
	return f.KeyLocked()
}

// KeyLocked is Key for a caller that holds the lock.
func (f Folder) KeyLocked() (identity.Key, error) {
	key, err := f.ReadKey()
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = identity.New()
	if err := WriteAtomic(f.Path(KeyFile), key.PEM(), 0o600); err != nil {
		return identity.Key{}, f.Unusable(err)
	}
	return key, nil
}

// ReadKey reads the folder's key, and fails with fs.ErrNotExist where there is none. It
// refuses a file that others can read or that belongs to another user.
func (f Folder) ReadKey() (identity.Key, error) {
	file := f.Path(KeyFile)
	info, err := os.Lstat(file)
	if err != nil {
		return identity.Key{}, err
	}
	if info.Mode().IsRegular() && OthersCanRead(info.Mode()) {
		return identity.Key{}, Mistakef("others can read the key %s, and could act as you with it: run chmod 600 %s", file, ShellQuote(file))
	}
	if owner, ours := Owner(info); !ours {
		return identity.Key{}, Mistakef("the key %s belongs to user %d: run this as that user, or give it to yours with chown", file, owner)
	}
	text, err := f.Read(KeyFile)
	if err != nil {
		return identity.Key{}, err
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		return identity.Key{}, Mistakef("%s: %w; restore the file (or delete it to create a new identity, which no grant or contact knows)", file, err)
	}
	return key, nil
}
