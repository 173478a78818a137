package state

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// start takes a folder as a site does when it starts, and gives it back.
func start(t *testing.T, f Folder) (token string) {
	t.Helper()
	t.Setenv("RUNTIME_DIRECTORY", filepath.Join(filepath.Dir(string(f)), "run"))
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	token, err = f.Token()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sign("demo"); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestFirstStart(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "new", "folder"))
	token := start(t, f)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(token) {
		t.Errorf("the token is %q", token)
	}
	if !f.Latch().Armed() {
		t.Error("a first start leaves the outputs stopped")
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]fs.FileMode{"token": 0o600, "lock": 0o600, "armed": 0o600, ".": 0o750 | fs.ModeDir} {
			if info, err := os.Stat(f.Path(name)); err != nil || info.Mode() != want {
				t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
			}
		}
	}
	if again := start(t, f); again != token {
		t.Error("the second start has another token")
	}
	if left, _ := filepath.Glob(f.Path("*new*")); left != nil {
		t.Errorf("left over: %v", left)
	}
	if other := start(t, Folder(filepath.Join(t.TempDir(), "d"))); other == token {
		t.Error("two sites have one token")
	}
}

// TestKilledWhileWriting: remains of a kill in the middle of a write are replaced.
func TestKilledWhileWriting(t *testing.T) {
	f := Folder(t.TempDir())
	if err := os.WriteFile(f.Path(TokenFile)+".new", []byte(strings.Repeat("half", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	token := start(t, f)
	if b, err := os.ReadFile(f.Path(TokenFile)); err != nil || string(b) != token+"\n" {
		t.Errorf("%q %v", b, err)
	}
	if all, _ := filepath.Glob(f.Path("*")); len(all) != 3 { // token, lock, armed
		t.Errorf("left over: %v", all)
	}
}

// TestStopOutlivesTheToken: only the owner's reset ends an emergency stop; deleting
// the token for a new one does not.
func TestStopOutlivesTheToken(t *testing.T) {
	f := Folder(t.TempDir())
	token := start(t, f)
	if err := f.Latch().Stop(); err != nil {
		t.Fatal(err)
	}
	if start(t, f); f.Latch().Armed() {
		t.Error("a restart has ended the stop")
	}
	if err := os.Remove(f.Path(TokenFile)); err != nil {
		t.Fatal(err)
	}
	if again := start(t, f); again == token || f.Latch().Armed() {
		t.Error("deleting the token has ended the stop, or brought no new token")
	}
	if err := f.Latch().Reset(); err != nil {
		t.Fatal(err)
	}
	os.Remove(f.Path(TokenFile))
	if start(t, f); !f.Latch().Armed() {
		t.Error("a new token has stopped the outputs")
	}
}

// TestStopOutlivesTheFolder: a stop survives the removal of its folder under a running site. If the
// folder is made again for a second site, each one's stop holds for the next start of both.
func TestStopOutlivesTheFolder(t *testing.T) {
	f := Folder(filepath.Join(t.TempDir(), "data"))
	start(t, f)
	first := f.Latch()
	if err := os.RemoveAll(string(f)); err != nil {
		t.Fatal(err)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	if start(t, f); f.Latch().Armed() {
		t.Error("a start on a new folder forgets the stop")
	}
	if err := f.Latch().Reset(); err != nil || !f.Latch().Armed() {
		t.Error(err)
	}
	if err := first.Stop(); err != nil || f.Latch().Armed() {
		t.Errorf("the first site's stop leaves the second's start armed, %v", err)
	}
}

func TestTokenFile(t *testing.T) {
	good := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		name, text string
		mode       fs.FileMode
		says       string
	}{
		{"good", good + "\n", 0o600, ""},
		{"good, read-only", good, 0o400, ""},
		{"others can read it", good, 0o644, "chmod 600"},
		{"its group can read it", good, 0o640, "chmod 600"},
		{"others can write it", good, 0o602, "chmod 600"},
		{"empty", "", 0o600, "64 hexadecimal digits"},
		{"cut short", good[:31], 0o600, "64 hexadecimal digits"},
		{"a space inside", good[:32] + " " + good[32:], 0o600, "64 hexadecimal digits"},
		{"other letters", strings.Repeat("xy", 32), 0o600, "64 hexadecimal digits"},
		{"blank", strings.Repeat(" ", 64), 0o600, "64 hexadecimal digits"},
	} {
		if runtime.GOOS == "windows" && tt.mode&0o077 != 0 {
			continue
		}
		f := Folder(t.TempDir())
		if err := os.WriteFile(f.Path(TokenFile), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.Path(TokenFile), tt.mode); err != nil {
			t.Fatal(err)
		}
		got, err := f.Token()
		if tt.says == "" {
			if got != good || err != nil {
				t.Errorf("%s: %q %v", tt.name, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), f.Path(TokenFile)) || !strings.Contains(err.Error(), tt.says) || got != "" {
			t.Errorf("%s: %q %v", tt.name, got, err)
		}
	}
}

func TestFolderInUse(t *testing.T) {
	f := Folder(t.TempDir())
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Sign("demo"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s is in use by the site \"demo\" (process %d): stop that one, or give this one a folder of its own with --data", f, os.Getpid())
	if _, err := f.Lock(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	unlock()
	again, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestUnusableFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, filepath.Join(file, "below"), closed} {
		if f == closed && (os.Getuid() == 0 || runtime.GOOS == "windows") {
			continue // to whom every folder is open
		}
		unlock, err := Folder(f).Lock()
		if err == nil {
			unlock()
			t.Errorf("%s can be used", f)
		} else if !strings.Contains(err.Error(), "--data") {
			t.Error(err)
		}
	}
}

func TestDefaultFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: on Windows the folder depends on other variables")
	}
	for _, tt := range []struct{ service, xdg, home, want string }{
		{"/var/lib/agentsite", "/x", "/h", "/var/lib/agentsite"},
		{"", "/x", "/h", "/x/agentsite"},
		{"", "relative", "/h", "/h/.local/state/agentsite"},
		{"", "", "/h", "/h/.local/state/agentsite"},
		{"", "", "", ""},
	} {
		t.Setenv("STATE_DIRECTORY", tt.service)
		t.Setenv("XDG_STATE_HOME", tt.xdg)
		t.Setenv("HOME", tt.home)
		got, err := DefaultFolder()
		if string(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%+v: %s %v", tt, got, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), "; set one with --data") {
			t.Error(err)
		}
	}
}
