//go:build unix

package state

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestRewriteTogether: of several that replace the same text at once one does, whole, and the others are told.
func TestRewriteTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.yaml")
	text := bytes.Repeat([]byte("-"), 1<<20)
	if err := os.WriteFile(path, text, 0o640); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		var all sync.WaitGroup
		var errs [8]error
		text := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i), byte('0' + round)}, 1<<19) }
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range errs {
			all.Go(func() { errs[i] = Rewrite(path, now, text(i)) })
		}
		all.Wait()
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for i, err := range errs {
			if err == nil {
				done++
				if !bytes.Equal(got, text(i)) {
					t.Errorf("round %d: %d is done, and the file begins with %.4s", round, i, got)
				}
			}
		}
		was, err := os.ReadFile(path + Before)
		if done != 1 || !bytes.Equal(was, now) {
			t.Errorf("round %d: %d are done, %v, before it was %.4s: %v", round, done, errs, was, err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Error(left, err)
	}
}
