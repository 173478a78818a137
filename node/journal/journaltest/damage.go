// Package journaltest damages journals for tests.
package journaltest

import (
	"os"
	"path/filepath"
	"testing"
)

// Damage changes a byte of the one file of a journal's folder, and returns the file and its
// content.
func Damage(t testing.TB, folder string) (file string, content []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.journal"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-50] ^= 1
	if err := os.WriteFile(files[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	return files[0], b
}
