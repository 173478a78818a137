package site

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/node/state"
)

// ownedFolder is one whose site has an owner, tokens, and all else that a site keeps.
func ownedFolder(t *testing.T) (state.Folder, *granting) {
	t.Helper()
	f := state.Folder(t.TempDir())
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := f.Token(); err != nil {
		t.Fatal(err)
	}
	if err := f.Sign("owned"); err != nil {
		t.Fatal(err)
	}
	g := newGranting(t, f)
	if _, err := g.token("a", "set x/y 1/h"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.own(TimeMethod, TimeNow{Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var w written
	if w.open(f); w.unopened != nil {
		t.Fatal(w.unopened)
	}
	return f, g
}

func sure() error { return nil }

func TestErase(t *testing.T) {
	f, g := ownedFolder(t)
	all := []string{state.TokenFile, state.AccessFile, state.CountsFile, state.JournalFolder, state.KeyFile}
	for _, name := range all { // as a kill leaves them
		if err := os.WriteFile(f.Path(name+".new"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Erase(f, true, func() error { return errors.New("not sure") }); err == nil || err.Error() != "not sure" {
		t.Fatal(err)
	}
	erased, err := Erase(f, false, sure)
	if err != nil || !slices.Equal(erased, all[:4]) {
		t.Fatal(erased, err)
	}
	key, err := f.ReadKey()
	if err != nil || key.ID() != g.book.Site {
		t.Error(err)
	}
	if !f.Latch().Armed() {
		t.Error("the latch is another")
	}
	if erased, err = Erase(f, true, sure); err != nil || !slices.Equal(erased, all[4:]) {
		t.Fatal(erased, err)
	}
	left, err := os.ReadDir(string(f))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"armed", "config", "lock"}; !slices.Equal(names, want) { // config is the owner's own
		t.Error(names)
	}
	if again, err := f.KeyLocked(); err != nil || again.ID() == g.book.Site {
		t.Error("it is the same site:", err)
	}
}

// TestEraseCutOff: wherever it ends, nobody gets in where nobody owns.
func TestEraseCutOff(t *testing.T) {
	for n := range 6 {
		f, _ := ownedFolder(t)
		erased, err := Erase(f, true, sure)
		if err != nil {
			t.Fatal(err)
		}
		f, g := ownedFolder(t)
		for _, name := range erased[:n] {
			if err := os.RemoveAll(f.Path(name)); err != nil {
				t.Fatal(err)
			}
		}
		book, err := openAccess(f, g.book.Site, nil)
		if err != nil {
			t.Fatal(err)
		}
		meter, err := f.Read(state.CountsFile)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(f.Path(state.TokenFile))
		if token := err == nil; token && !book.Claimed() {
			t.Errorf("after %v: nobody owns it, and the token is there", erased[:n])
		}
		if book.Claimed() && meter == nil || !book.Claimed() && len(book.Tokens()) > 0 {
			t.Errorf("after %v: %d tokens", erased[:n], len(book.Tokens()))
		}
	}
}

func TestEraseRefused(t *testing.T) {
	f, _ := ownedFolder(t)
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	never := func() error { t.Error("it asks"); return nil }
	if _, err := Erase(f, true, never); err == nil || !strings.Contains(err.Error(), `in use by the site "owned"`) || !strings.Contains(err.Error(), "stop it first") {
		t.Error(err)
	}
	missing := state.Folder(f.Path("missing"))
	var mistake state.Mistake
	if _, err := Erase(missing, true, never); !errors.As(err, &mistake) {
		t.Error(err)
	}
	if _, err := os.Stat(string(missing)); err == nil {
		t.Error("it is made")
	}
}
