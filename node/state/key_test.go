package state

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// TestOneKey: callers that start at once get one key, and the folder is free afterwards.
func TestOneKey(t *testing.T) {
	f := Folder(t.TempDir())
	var all sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		all.Go(func() {
			for ids[i] == "" { // while another holds the folder
				if who, err := f.Identity(); err == nil {
					ids[i] = who.DID
				} else if !strings.Contains(err.Error(), "is in use") {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("two keys: %v", ids)
		}
	}
	unlock, err := f.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestForeignKey(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only the superuser can give files away; CI does, as root")
	}
	f := Folder(t.TempDir())
	if _, err := f.Key(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(f.Path(KeyFile), 65534, -1); err != nil {
		t.Fatal(err)
	}
	_, err := f.Key()
	if err == nil || !strings.Contains(err.Error(), "user 65534") {
		t.Fatal(err)
	}
}
