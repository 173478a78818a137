package backup

import (
	"context"
	"io"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"

	"github.com/go-json-experiment/json"
)

// maxExport bounds a backup, which is sent in one answer.
const maxExport = 2 << 20

// ExportAct answers a backup without history, sealed for the key of the calling owner.
const ExportAct op.Name[op.None, Exported] = "owner/backup"

// Exported answers ExportAct.
type Exported struct {
	Sealed []byte `json:"sealed"` // for the key of the calling owner
}

// Exporter makes backups of a site for its owners elsewhere.
type Exporter struct {
	Folder state.Folder
	Config string // the configuration's file
	Site   identity.ID
}

// Operations returns the owners' operation of x, which may be nil for a site without a file. own runs and journals
// what an owner does.
func (x *Exporter) Operations(own func(who agents.Principal, method, about string, do func() error) error) []op.Row {
	return []op.Row{op.ForOwners(ExportAct, agents.Acts, "fleet backup",
		"Answer a backup, sealed for the key of the owner who asks.",
		func(_ context.Context, who agents.Principal, _ op.None) (e Exported, err error) {
			if x == nil {
				return e, device.Faultf(device.Invalid, "the demonstration has nothing to back up")
			}
			err = own(who, "backup", "", func() error { e.Sealed, err = x.sealedFor(who); return err })
			return e, err
		})}
}

// sealedFor seals a backup for the key of the owner who asks, and nobody else's: who took over a session of an owner
// does not have that key, and can read nothing.
func (x *Exporter) sealedFor(who agents.Principal) ([]byte, error) {
	to, err := identity.Parse(who.ID)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "a backup is sealed for the key by which an owner connects: ask with "+
			"--site, "+
			"or run agentsite backup on the site's own machine")
	}
	b, err := collect(Options{Folder: x.Folder, Config: x.Config})
	if err == nil {
		_, err = b.verify()
	}
	if err != nil {
		return nil, device.Faultf(device.Unavailable, "the site cannot be backed up: %w", err)
	}
	text, err := json.Marshal(b)
	if err == nil && len(text) > maxExport {
		err = device.Faultf(device.Invalid, "the backup has %d kB, more than the %d kB that are sent: run agentsite backup "+
			"on the site's machine", len(text)>>10, maxExport>>10)
	}
	if err != nil {
		return nil, err
	}
	return to.Seal(sealPurpose(x.Site), text)
}

// sealPurpose is the purpose of the sealed backup of a site.
func sealPurpose(site identity.ID) identity.Purpose {
	return identity.Purpose("backup of " + site.String())
}

// Store opens what a site answered to ExportAct with the owner's key, and seals it into a file as Create does. The
// site's text is not trusted.
func Store(o Options, key identity.Key, site identity.ID, answer Exported) (*Summary, error) {
	if err := checkFree(o.File, o.Force); err != nil {
		return nil, err
	}
	text, err := key.Open(sealPurpose(site), answer.Sealed)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "the site's backup cannot be opened: %w", err)
	}
	var b content
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, device.Faultf(device.Invalid, "the site sent no backup: it may have another version")
	}
	about, err := b.verify()
	switch {
	case err != nil:
		return nil, device.Faultf(device.Invalid, "the site sent a damaged backup: %w", err)
	case b.DID != site.String() || b.Of != ofSite:
		return nil, device.Faultf(device.Invalid, "the site sent the backup of another key: do not trust it with anything")
	case b.Version < oldest || b.Version > version:
		return nil, device.Faultf(device.Invalid, "the site has a newer version than this program: update this one first")
	}
	passphrase, err := o.Passphrase()
	if err == nil {
		err = CheckPassphrase(passphrase)
	}
	if err != nil {
		return nil, err
	}
	about.Config = o.Config
	return about, writeNew(o.File, o.Force, func(w io.Writer) error {
		return seal(w, passphrase, workFactor, b.write)
	})
}
