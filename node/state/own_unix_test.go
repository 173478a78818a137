//go:build unix

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOthersWords: every entrance to a folder refuses what somebody else put there, or could have,
// names it, and changes nothing that a link leads to.
func TestOthersWords(t *testing.T) {
	token := strings.Repeat("ab", 32)
	good := func(t *testing.T) Folder {
		f := Folder(filepath.Join(t.TempDir(), "above", "data"))
		unlock, err := f.Lock()
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if _, err := f.KeyLocked(); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{TokenFile: token, AccessFile: "a", CountsFile: "c", PausedFile: "p", AcceptedFile: "{}", PushFile: "{}", HooksFile: "{}", PlanFile: "{}"} {
			if err := os.WriteFile(f.Path(name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	entrances := map[string]func(Folder) error{
		"Lock":   func(f Folder) error { unlock, err := f.Lock(); return ended(unlock, err) },
		"Token":  func(f Folder) error { _, err := f.Token(); return err },
		"Read":   func(f Folder) error { _, err := f.Read(AccessFile); return err },
		"Paused": func(f Folder) error { _, err := f.Paused(); return err },
		"Key":    func(f Folder) error { _, err := f.ReadKey(); return err },
		"Sign":   func(f Folder) error { return f.Sign("x") },
		"Plan":   func(f Folder) error { _, err := f.ReadPlan(); return err },
		"guard": func(f Folder) error {
			file, err := f.OpenLockFile("guard.lock")
			return ended(func() { file.Close() }, err)
		},
	}
	f := good(t)
	for name, enter := range entrances {
		if err := enter(f); err != nil {
			t.Fatalf("%s of one's own folder: %v", name, err)
		}
	}
	chmod := func(mode fs.FileMode, names ...string) func(Folder) error {
		return func(f Folder) error { return os.Chmod(filepath.Join(append([]string{string(f)}, names...)...), mode) }
	}
	chown := func(name string) func(Folder) error {
		return func(f Folder) error { return os.Lchown(filepath.Join(string(f), name), 3001, 3001) }
	}
	link := func(name string) func(Folder) error {
		return func(f Folder) error {
			victim := filepath.Join(filepath.Dir(filepath.Dir(string(f))), "victim")
			if err := errors.Join(os.WriteFile(victim, []byte(token), 0o600), os.RemoveAll(f.Path(name))); err != nil {
				return err
			}
			return os.Symlink(victim, f.Path(name))
		}
	}
	all := "Lock Token Read Paused Key Sign"
	for _, tt := range []struct {
		name    string
		do      func(Folder) error
		refused string // by these entrances at least
		root    bool   // only the superuser can make it
	}{
		{"the folder is everybody's", chmod(0o777), all, false},
		{"the folder is everybody's and sticky", chmod(0o777 | fs.ModeSticky), all, false},
		{"the folder above is everybody's", chmod(0o777, ".."), all, false},
		{"the token is everybody's", chmod(0o606, TokenFile), "Lock Token", false},
		{"the permissions are everybody's", chmod(0o602, AccessFile), "Lock Read", false},
		{"the plan is everybody's", chmod(0o602, PlanFile), "Lock Plan", false},
		{"the lock is a link", link(lockName), "Lock Sign", false},
		{"the guard's lock is a link", link("guard.lock"), "guard", false},
		{"the token is a link", link(TokenFile), "Token", false},
		{"the key is a link", link(KeyFile), "Key", false},
		{"the plan is a link", link(PlanFile), "Plan", false},
		{"the paused agents are a link", link(PausedFile), "Paused", false},
		{"another's folder", chown("."), all + " Plan guard", true},
		{"another's folder above", chown(".."), all + " Plan guard", true},
		{"another's token", chown(TokenFile), "Lock Token", true},
		{"another's lock", chown(lockName), "Lock Sign", true},
		{"another's permissions", chown(AccessFile), "Lock Read", true},
		{"another's push configurations", chown(PushFile), "Lock", true},
		{"another's key", chown(KeyFile), "Lock Key", true},
		{"another's plan", chown(PlanFile), "Lock Plan", true},
		{"another's guard", func(f Folder) error {
			return errors.Join(os.WriteFile(f.Path("guard.lock"), nil, 0o600), chown("guard.lock")(f))
		}, "Lock guard", true},
	} {
		if tt.root && os.Geteuid() != 0 {
			continue
		}
		f := good(t)
		if err := tt.do(f); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(tt.refused) {
			var mistake Mistake
			if err := entrances[name](f); !errors.As(err, &mistake) {
				t.Errorf("%s: %s says %v", tt.name, name, err)
			} else if !strings.Contains(err.Error(), filepath.Dir(string(f))) {
				t.Errorf("%s: %s names nothing: %v", tt.name, name, err)
			}
		}
		victim, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(string(f))), "victim"))
		if err == nil && string(victim) != token {
			t.Errorf("%s: what a link led to is now %q", tt.name, victim)
		}
	}
}

func ended(end func(), err error) error {
	if err == nil {
		end()
	}
	return err
}

// TestOwnFolder: folders that are one's own are used: in a sticky folder, through one's own link, and
// with a private group. A folder that the guard has to take over may be open to others.
func TestOwnFolder(t *testing.T) {
	dir := t.TempDir()
	sticky := filepath.Join(dir, "sticky")
	for path, mode := range map[string]fs.FileMode{sticky: 0o777 | fs.ModeSticky, filepath.Join(dir, "disk"): 0o750} {
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("disk", link); err != nil {
		t.Fatal(err)
	}
	for _, f := range []Folder{Folder(filepath.Join(sticky, "new", "data")), Folder(link), Folder(filepath.Join(link, "below"))} {
		unlock, err := f.Lock()
		if err != nil {
			t.Error(err)
			continue
		}
		unlock()
	}
	if os.Getegid() == os.Geteuid() {
		private := Folder(filepath.Join(dir, "private"))
		if err := errors.Join(os.Mkdir(string(private), 0o700), os.Chmod(string(private), 0o770)); err != nil {
			t.Fatal(err)
		}
		if err := ended(private.Lock()); err != nil {
			t.Error(err)
		}
	}
	if os.Geteuid() != 0 {
		open := Folder(filepath.Join(dir, "open"))
		if err := errors.Join(os.Mkdir(string(open), 0o700), os.Chmod(string(open), 0o777)); err != nil {
			t.Fatal(err)
		}
		if file, err := open.OpenLockFile("guard.lock"); err != nil {
			t.Error(err)
		} else {
			file.Close()
		}
	}
}
