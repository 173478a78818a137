package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// exported asks the site of a folder for its backup as an owner with an ID.
func exported(t *testing.T, x *Exporter, id string) (Exported, error) {
	t.Helper()
	row := x.Operations(func(_ agents.Principal, _, _ string, do func() error) error { return do() })[0]
	out, err := row.Do(t.Context(), agents.Principal{ID: id, Owner: true}, func(any) error { return nil })
	e, _ := out.(Exported)
	return e, err
}

func TestExport(t *testing.T) {
	f, _ := ownedFolder(t)
	key, err := f.ReadKey()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "agentsite.yaml")
	if err := os.WriteFile(config, []byte("site: { name: shed }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := &Exporter{Folder: f, Config: config, Site: key.ID()}
	owner := identity.New()
	sent, err := exported(t, x, owner.ID().String())
	if err != nil {
		t.Fatal(err)
	}
	o := Options{File: filepath.Join(t.TempDir(), "shed.age"), Passphrase: func() (string, error) { return correct, nil }}
	for what, store := range map[string]func() (*Summary, error){
		"another owner's key": func() (*Summary, error) { return Store(o, identity.New(), key.ID(), sent) },
		"another site":        func() (*Summary, error) { return Store(o, owner, identity.New().ID(), sent) },
		"nothing":             func() (*Summary, error) { return Store(o, owner, key.ID(), Exported{}) },
		"another site's backup": func() (*Summary, error) {
			other := identity.New().ID()
			text, err := owner.Open(sealPurpose(key.ID()), sent.Sealed)
			if err == nil {
				text, err = owner.ID().Seal(sealPurpose(other), text)
			}
			if err != nil {
				t.Fatal(err)
			}
			return Store(o, owner, other, Exported{text})
		},
	} {
		if _, err := store(); err == nil || device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	weak := o
	weak.Passphrase = func() (string, error) { return "short", nil }
	if _, err := Store(weak, owner, key.ID(), sent); err == nil {
		t.Error("a passphrase that Create refuses is taken")
	}
	about, err := Store(o, owner, key.ID(), sent)
	if err != nil || about.DID != key.ID().String() || about.Owners != 1 {
		t.Fatalf("%+v, %v", about, err)
	}
	o.Folder, o.Config = state.Folder(t.TempDir()), filepath.Join(t.TempDir(), "agentsite.yaml")
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if again, err := o.Folder.ReadKey(); err != nil || again.ID() != key.ID() {
		t.Errorf("%v, %v", again, err)
	}
}

// TestExportRefused: nobody without a key gets a backup, and the demonstration has none.
func TestExportRefused(t *testing.T) {
	f, _ := ownedFolder(t)
	for id, x := range map[string]*Exporter{"local": {Folder: f}, identity.New().ID().String(): nil} {
		if sent, err := exported(t, x, id); err == nil || sent.Sealed != nil {
			t.Errorf("%s: %x, %v", id, sent.Sealed, err)
		}
	}
	row := new(Exporter).Operations(func(agents.Principal, string, string,
		func() error) error {
		return errors.New("no owner")
	})[0]
	if _, err := row.Do(context.Background(), agents.Principal{}, func(any) error { return nil }); err == nil {
		t.Error("who is no owner gets a backup")
	}
}
