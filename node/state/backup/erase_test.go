package backup

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/journal"
	"agentsite/node/state"
)

// owned is the site of a folder, and the key of its owner.
type owned struct {
	book  *access.Store
	owner identity.Key
}

// openSite opens the access store of a folder, as its site does.
func openSite(t *testing.T, f state.Folder, site identity.ID) *access.Store {
	t.Helper()
	o := access.Options{
		Site:        site,
		URL:         "u",
		SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess:  func(b []byte) error { return state.WriteAtomic(f.Path(state.AccessFile), b, 0o600) },
		SaveCounts:  func(b []byte) error { return state.WriteAtomic(f.Path(state.CountsFile), b, 0o600) },
	}
	var err, err2 error
	o.Access, err = f.Read(state.AccessFile)
	o.Counts, err2 = f.Read(state.CountsFile)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	book, err := access.NewStore(o)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

// token adds a token with those permissions and returns its principal.
func (o *owned) token(name, words string) (p agents.Principal, _ error) {
	may, err := access.ParsePermissions(words)
	if err != nil {
		return p, err
	}
	until := time.Now().Add(time.Hour)
	g, err := access.Issue(o.owner, access.Block{Audience: o.book.Site, Node: o.book.Site, Permissions: may, Until: until.Unix()})
	if err != nil {
		return p, err
	}
	token, err := o.book.AddToken(name, g.Bytes(), until)
	if err != nil {
		return p, err
	}
	return o.book.Bearer(token)
}

// ownedFolder returns a folder whose site has an owner, a token, counts and a journal.
func ownedFolder(t *testing.T) (state.Folder, *owned) {
	t.Helper()
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
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
	key, err := f.KeyLocked()
	if err != nil {
		t.Fatal(err)
	}
	o := &owned{openSite(t, f, key.ID()), identity.New()}
	if err := o.book.Claim(access.Owner{ID: o.owner.ID()}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.token("a", "set x/y 1/h"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(o.book.AdvanceClock(time.Now()), o.book.Save()); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(f.Path(state.JournalFolder)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(f.Path(state.HistoryFolder), 0o700), os.Mkdir(f.Path(state.TasksFolder), 0o700)); err != nil {
		t.Fatal(err)
	}
	return f, o
}

func sure() error { return nil }

func TestErase(t *testing.T) {
	f, g := ownedFolder(t)
	all := []string{state.TokenFile, state.AccessFile, state.CountsFile, state.JournalFolder, state.HistoryFolder, state.TasksFolder, state.KeyFile}
	for _, name := range all { // as a kill leaves them
		if err := os.WriteFile(f.Path(name+".new"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Erase(f, true, func() error { return errors.New("not sure") }); err == nil || err.Error() != "not sure" {
		t.Fatal(err)
	}
	erased, err := Erase(f, false, sure)
	if err != nil || !slices.Equal(erased, all[:6]) {
		t.Fatal(erased, err)
	}
	key, err := f.ReadKey()
	if err != nil || key.ID() != g.book.Site {
		t.Error(err)
	}
	if !f.Latch().Armed() {
		t.Error("the latch is another")
	}
	if erased, err = Erase(f, true, sure); err != nil || !slices.Equal(erased, all[6:]) {
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
	if want := []string{"armed", "lock"}; !slices.Equal(names, want) {
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
		book := openSite(t, f, g.book.Site)
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
	if _, err := Erase(f, true, never); err == nil || !strings.Contains(err.Error(), `"owned"`) || !strings.Contains(err.Error(), "stop it first") {
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
