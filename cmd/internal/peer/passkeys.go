package peer

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"agentsite/node/state"
	"agentsite/transport/passkey"
)

const (
	passkeysName    = "passkeys.json"
	passkeysVersion = 1
)

// Passkey is one by which a person confirms what only an owner may do.
type Passkey struct {
	Name  string    `json:"name"` // of the browser that made it, in the page's words
	Added time.Time `json:"added"`
	passkey.Credential
}

// Passkeys are a person's passkeys. They are safe for concurrent use, also by several processes.
type Passkeys struct{ folder state.Folder }

// Passkeys returns the person's passkeys.
func (p Person) Passkeys() Passkeys { return Passkeys{p.Folder} }

// List reads them. There are none where there is no file.
func (p Passkeys) List() ([]Passkey, error) {
	var file passkeysFile
	err := readJSON(p.folder, passkeysName, &file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && file.Version != passkeysVersion:
		err = fmt.Errorf("it has the version %d, and this program knows %d", file.Version, passkeysVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", p.folder.Path(passkeysName), err)
	}
	return file.Passkeys, nil
}

// Change replaces them by the result of edit, while no other process does. An error of edit leaves them.
func (p Passkeys) Change(edit func([]Passkey) ([]Passkey, error)) error {
	return withLock(p.folder, lockTimeout, func() error {
		all, err := p.List()
		if err == nil {
			all, err = edit(all)
		}
		if err != nil {
			return err
		}
		return writeJSON(p.folder, passkeysName, passkeysFile{passkeysVersion, all})
	})
}

type passkeysFile struct {
	Version  int       `json:"version"`
	Passkeys []Passkey `json:"passkeys"`
}
