package state

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestSecret: a secret is read where nobody else can read it, and what the service manager hands over
// comes first.
func TestSecret(t *testing.T) {
	folder, handed := t.TempDir(), t.TempDir()
	write := func(folder, name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(folder, "good", "sk-1\n", 0o600)
	write(folder, "open", "sk-2\n", 0o644)
	write(folder, "lines", "sk-3\nsk-4\n", 0o600)
	write(folder, "empty", "\n", 0o600)
	write(handed, "both", "sk-5", 0o440)
	write(folder, "both", "sk-6", 0o600)
	check := func(name, want string) {
		t.Helper()
		if got, err := Secret(folder, name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	check("good", "sk-1")
	check("lines", "")
	check("empty", "")
	check("none", "")
	if runtime.GOOS != "windows" {
		check("open", "")
	}
	check("both", "sk-6")
	t.Setenv("CREDENTIALS_DIRECTORY", handed)
	check("both", "sk-5")
	check("good", "sk-1")
}
