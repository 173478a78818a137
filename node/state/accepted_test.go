package state

import "testing"

// TestAcceptedBound: a file that could not be read at the next start is not written.
func TestAcceptedBound(t *testing.T) {
	f := Folder(t.TempDir())
	for n, refused := range map[int]bool{MaxAccepted: false, MaxAccepted + 1: true} {
		if err := f.WriteAccepted(make([]byte, n)); (err != nil) != refused {
			t.Errorf("%d bytes: %v", n, err)
		}
		if text, err := f.Accepted(); err != nil || len(text) > MaxAccepted {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}
