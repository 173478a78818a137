package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/bundle"
	"agentsite/node/state"
)

const correct = "correct horse battery"

// sealText seals a text cheaply.
func sealText(t *testing.T, text []byte) []byte {
	t.Helper()
	var sealed bytes.Buffer
	err := seal(&sealed, correct, 1, func(w io.Writer) error { _, err := w.Write(text); return err })
	if err != nil {
		t.Fatal(err)
	}
	return sealed.Bytes()
}

func unsealText(sealed []byte, passphrase string) (text []byte, err error) {
	err = unseal(bytes.NewReader(sealed), passphrase, func(r io.Reader) (err error) { text, err = io.ReadAll(r); return err })
	return text, err
}

// TestSealed: a changed or truncated file does not open, and the error says whose fault it is.
func TestSealed(t *testing.T) {
	text := bytes.Repeat([]byte("secret"), 30_000) // more than one chunk
	sealed := sealText(t, text)
	if got, err := unsealText(sealed, correct); err != nil || !bytes.Equal(got, text) {
		t.Fatal(err)
	}
	refused := func(sealed []byte, passphrase, what string) error {
		_, err := unsealText(sealed, passphrase)
		var mistake state.Mistake
		if !errors.As(err, &mistake) && device.AsFault(err).Kind != device.Denied {
			t.Errorf("%s: %v", what, err)
		}
		return err
	}
	for n := range len(sealed) {
		if n > 300 && n%997 != 0 && n < len(sealed)-2 {
			continue
		}
		refused(sealed[:n], correct, fmt.Sprint("cut off after ", n))
		flipped := bytes.Clone(sealed)
		flipped[n] ^= 1
		refused(flipped, correct, fmt.Sprint("another byte ", n))
	}
	if err := refused(sealed, correct+" ", "a wrong passphrase"); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	if err := refused(sealed, "", "none"); device.AsFault(err).Kind == device.Denied {
		t.Error(err)
	}
	costly := bytes.Replace(sealed, []byte(" 1\n"), []byte(" 30\n"), 1)
	if err := refused(costly, correct, "1 TiB of memory"); !strings.Contains(err.Error(), "work factor too large") {
		t.Error(err)
	}
}

func TestPassphrases(t *testing.T) {
	a, b := NewPassphrase(), NewPassphrase()
	if a == b || len(a) != 29 || CheckPassphrase(a) != nil {
		t.Error(a, b)
	}
	if CheckPassphrase("äöüäöüäöüäöü") != nil || CheckPassphrase("äöüäöüäöüäö") == nil {
		t.Error("letters are not what is counted")
	}
}

// TestUnsealBackup: a file that the passphrase opens is not trusted either.
func TestUnsealBackup(t *testing.T) {
	f, _ := ownedFolder(t)
	for text, want := range map[string]string{
		"":                                "no backup",
		"hello":                           "no backup",
		"{}":                              "no backup",
		`{"agentsite_backup":9}`:          "newer agentsite",
		`{"agentsite_backup":1}`:          "version 1",
		`{"agentsite_backup":2,`:          "cannot be read",
		`{"agentsite_backup":2}x`:         "cannot be read",
		`{"agentsite_backup":"1"}`:        "no backup",
		`{"agentsite_backup":9,"more":1}`: "newer agentsite",
		`{"agentsite_backup":2,"agentsite_backup":2}`:      "cannot be read",
		`{"agentsite_backup":2,"more":1}`:                  "cannot be read",
		`{"agentsite_backup":2,"access":"not in base64!"}`: "cannot be read",
	} {
		if _, err := open(bytes.NewReader(sealText(t, []byte(text))), correct); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for name, spoil := range map[string]func(*content){
		"of another site": func(b *content) { b.DID = "did:key:z6Mkq9vWijaoqirVNDg8UxJbdWxKEYpQA4DSesD9LSW9edtB" },
		"no key":          func(b *content) { b.Key = "" },
		"no output":       func(b *content) { b.NoEffect = []string{"../pump"} },
		"of a cat":        func(b *content) { b.Of = "cat" },
		"permissions":     func(b *content) { b.Access = b.Access[1:] },
		"counts":          func(b *content) { b.Counts = b.Counts[1:] },
	} {
		b, err := collect(Options{Folder: f, Config: os.DevNull})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.verify(); err != nil {
			t.Fatal(err)
		}
		spoil(b)
		if _, err := b.verify(); err == nil {
			t.Error(name)
		}
	}
}

// restoring are options for a folder of its own and a backup that is sealed cheaply.
func restoring(t *testing.T, b *content) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		File: filepath.Join(dir, "backup"), Folder: state.Folder(filepath.Join(dir, "data")), Config: filepath.Join(dir, "site.yaml"),
		Passphrase: func() (string, error) { return correct, nil },
	}
	var text bytes.Buffer
	if err := b.write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.File, sealText(t, text.Bytes()), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestRestoreCutOff: whatever cannot be written, there is no key, and the same again
// restores all.
func TestRestoreCutOff(t *testing.T) {
	f, g := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	b.Config, b.Stopped = "site: { name: again }\n", true
	for _, name := range []string{"../site.yaml", state.AccessFile, state.CountsFile, "lock", state.KeyFile} {
		o := restoring(t, b)
		if err := os.MkdirAll(string(o.Folder), 0o700); err != nil {
			t.Fatal(err)
		}
		inTheWay := o.Folder.Path(name)
		if name != "lock" && name != "../site.yaml" {
			inTheWay += ".new"
		}
		if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(o); err == nil {
			t.Errorf("%s: it can be written", name)
		}
		if _, err := os.Stat(o.Folder.Path(state.KeyFile)); err == nil {
			t.Errorf("%s: there is a key", name)
		}
		if err := os.RemoveAll(inTheWay); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(o); err != nil {
			t.Error(name, err)
		}
		key, err := o.Folder.ReadKey()
		if err != nil || key.ID() != g.book.Site {
			t.Error(name, err)
		}
		if again := openSite(t, o.Folder, key.ID()); len(again.Tokens()) != 1 || !again.Claimed() {
			t.Error(name, err)
		}
		if text, err := os.ReadFile(o.Config); err != nil || string(text) != b.Config {
			t.Error(name, err)
		}
		if _, err := o.Folder.Token(); err != nil || o.Folder.Latch().Armed() {
			t.Error(name, "the emergency stop is forgotten", err)
		}
	}
}

// TestRestoreOverRemains: remains of another site in the folder do not count.
func TestRestoreOverRemains(t *testing.T) {
	f, _ := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	b.Access, b.Counts = nil, nil // of a site that nobody owns
	o := restoring(t, b)
	o.Folder, _ = ownedFolder(t)
	if err := os.Remove(o.Folder.Path(state.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	key, err := o.Folder.ReadKey()
	if err != nil {
		t.Fatal(err)
	}
	if openSite(t, o.Folder, key.ID()).Claimed() {
		t.Error("the owners of before")
	}
}

func TestRestoreIntoAnothersFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only the superuser can give folders away; CI does, as root")
	}
	f := state.Folder(t.TempDir())
	if err := os.Chown(string(f), 65534, -1); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(Options{Folder: f})
	if err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Error(err)
	}
}

// TestBackupBesideTheSite: a backup made while a site grants and counts is consistent.
func TestBackupBesideTheSite(t *testing.T) {
	f, g := ownedFolder(t)
	if err := g.book.AdvanceClock(time.Now()); err != nil {
		t.Fatal(err)
	}
	var site sync.WaitGroup
	site.Go(func() {
		for n := range 20 {
			name := fmt.Sprint("t", n)
			p, err := g.token(name, "set x/y 5/h")
			if err != nil {
				t.Error(err)
			}
			if _, err := g.book.Take(p, agents.Ask{Tool: "set_level", Points: []string{"x/y"}}, false); err != nil {
				t.Error(err)
			}
		}
	})
	for range 50 {
		b, err := collect(Options{Folder: f, Config: os.DevNull})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.verify(); err != nil {
			t.Error(err)
		}
		if _, err := access.RestoreCounts(b.Counts); err != nil {
			t.Error(err)
		}
	}
	site.Wait()
}

// TestSequence: a restored site continues the numbers of its records.
func TestSequence(t *testing.T) {
	f, _ := ownedFolder(t)
	if err := f.WriteSequence(4000); err != nil {
		t.Fatal(err)
	}
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	o := restoring(t, b)
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if n := o.Folder.Sequence(); n != 4000 {
		t.Errorf("it continues after %d", n)
	}
}

// restored returns the options by which a backup of a folder was restored.
func restored(t *testing.T, f state.Folder) Options {
	t.Helper()
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(b, err)
	}
	o := restoring(t, b)
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestGrantsOfOtherSites: those that a site's agents ask by come back with it.
func TestGrantsOfOtherSites(t *testing.T) {
	f, _ := ownedFolder(t)
	sites := []byte(`[{"name":"shed"}]`)
	if err := state.WriteAtomic(f.Path(state.SitesFile), sites, 0o600); err != nil {
		t.Fatal(err)
	}
	o := restored(t, f)
	if got, err := o.Folder.Read(state.SitesFile); err != nil || !bytes.Equal(got, sites) {
		t.Errorf("%s, %v", got, err)
	}
}

// TestImportedAgents: the agents that came as bundles come back with the site, and a damaged file
// of them is in no backup.
func TestImportedAgents(t *testing.T) {
	f, _ := ownedFolder(t)
	imports, err := new(bundle.Imports).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := state.WriteAtomic(f.Path(state.ImportsFile), imports, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(b, err)
	}
	o := restoring(t, b)
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Folder.Read(state.ImportsFile); err != nil || !bytes.Equal(got, imports) {
		t.Errorf("%x, %v", got, err)
	}
	b.Imports = imports[1:]
	if _, err := b.verify(); err == nil {
		t.Error("damaged imports are restored")
	}
}

// TestPausedAgents: the restored site does not run paused agents, and remains of another site in
// the folder do not count.
func TestPausedAgents(t *testing.T) {
	for _, paused := range [][]string{{"frost", "dusk"}, nil} {
		f, _ := ownedFolder(t)
		if paused != nil {
			if err := f.WritePaused(paused); err != nil {
				t.Fatal(err)
			}
		}
		b, err := collect(Options{Folder: f, Config: os.DevNull})
		if err != nil {
			t.Fatal(err)
		}
		o := restoring(t, b)
		if err := os.MkdirAll(string(o.Folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := o.Folder.WritePaused([]string{"other"}); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(o); err != nil {
			t.Fatal(err)
		}
		if got, err := o.Folder.Paused(); err != nil || !slices.Equal(got, paused) {
			t.Errorf("%q, %v; want %q", got, err, paused)
		}
	}
	if _, err := (&content{Version: version, Of: ofSite, Paused: []string{"../key"}}).verify(); err == nil {
		t.Error("anything is the name of an agent")
	}
}

// TestRestoredConfigIsSecret: only its user can read a restored configuration.
func TestRestoredConfigIsSecret(t *testing.T) {
	f, _ := ownedFolder(t)
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil {
		t.Fatal(err)
	}
	b.Config = "site: { name: card }\nclaim: fDtmqbFcp-Bf7i3dkYdKuw\n"
	o := restoring(t, b)
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(o.Config); err != nil || state.OthersCanRead(info.Mode()) {
		t.Error(info, err)
	}
}

// TestOwnerKey: the backup of an owner's key restores that key, and is no backup of a site.
func TestOwnerKey(t *testing.T) {
	f := state.Folder(t.TempDir())
	made, err := f.KeyLocked()
	if err != nil {
		t.Fatal(err)
	}
	b, err := collect(Options{Folder: f, Owner: true})
	if err != nil {
		t.Fatal(err)
	}
	if about, err := b.verify(); err != nil || about.Of != ofOwner || about.DID != made.ID().String() {
		t.Fatal(about, err)
	}
	o := restoring(t, b)
	if _, err := Restore(o); !errors.As(err, new(state.Mistake)) {
		t.Error("an owner's key as a site:", err)
	}
	o.Owner = true
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if key, err := o.Folder.ReadKey(); err != nil || key.ID() != made.ID() {
		t.Error("another key:", err)
	}
}

// TestHistory: a backup has the history on request only, and brings it back.
func TestHistory(t *testing.T) {
	f, _ := ownedFolder(t)
	files := map[string][]byte{"raw-0000000000000001": {1, 0, 2, 0}, "hours-0000000000000001": {}}
	if err := writeHistory(f, files); err != nil {
		t.Fatal(err)
	}
	for _, with := range []bool{false, true} {
		o := Options{File: filepath.Join(t.TempDir(), "backup"), Folder: f, Config: os.DevNull, History: with,
			Passphrase: func() (string, error) { return correct, nil }}
		if _, err := Create(o); err != nil {
			t.Fatal(err)
		}
		o.Folder = state.Folder(filepath.Join(t.TempDir(), "data"))
		if _, err := Restore(o); err != nil {
			t.Fatal(err)
		}
		got, err := readHistory(o.Folder)
		if err != nil || !with && len(got) != 0 || with && !maps.EqualFunc(got, files, bytes.Equal) {
			t.Errorf("with: %v: %v, %v", with, got, err)
		}
	}
	escaping := content{Version: version, Of: ofSite, History: map[string][]byte{"../key": nil}}
	key, err := f.ReadKey()
	if err != nil {
		t.Fatal(err)
	}
	escaping.Key, escaping.DID = string(key.PEM()), key.ID().String()
	if _, err := escaping.verify(); err == nil {
		t.Error("a name that leads out of the folder is accepted")
	}
}

// TestHistoryInBackup: a history that could not be restored is refused, and a folder that a file
// system has in its root is left out.
func TestHistoryInBackup(t *testing.T) {
	f, _ := ownedFolder(t)
	folder := f.Path(state.HistoryFolder)
	if err := os.MkdirAll(filepath.Join(folder, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(folder, "raw-1")
	if err := os.WriteFile(large, []byte("a block"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := readHistory(f); err != nil || len(all) != 1 {
		t.Errorf("%d files, %v", len(all), err)
	}
	if err := os.Truncate(large, maxHistory+1); err != nil {
		t.Fatal(err)
	}
	var mistake state.Mistake
	if _, err := readHistory(f); !errors.As(err, &mistake) || !strings.Contains(err.Error(), "--history") {
		t.Error(err)
	}
}

// TestSealKeepsTheDisksError: an error of the disk, such as a full one, is not lost in the sealing.
func TestSealKeepsTheDisksError(t *testing.T) {
	full := errors.New("no space left")
	for room := range 3 {
		w := writerFunc(func(b []byte) (int, error) {
			if room--; room < 0 {
				return 0, full
			}
			return len(b), nil
		})
		err := seal(w, correct, 1, func(w io.Writer) error { _, err := w.Write(make([]byte, 200_000)); return err })
		if !errors.Is(err, full) {
			t.Error(err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
