package backup

import (
	"bytes"
	"os"
	"testing"
)

// TestAcceptedTools: accepted tools of other programs are accepted on the restored site.
func TestAcceptedTools(t *testing.T) {
	f, _ := ownedFolder(t)
	accepted := []byte(`{"weather":{}}`)
	if err := f.WriteAccepted(accepted); err != nil {
		t.Fatal(err)
	}
	b, err := collect(Options{Folder: f, Config: os.DevNull})
	if err != nil || b.Version != version {
		t.Fatal(b, err)
	}
	o := restoring(t, b)
	if _, err := Restore(o); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Folder.Accepted(); err != nil || !bytes.Equal(got, accepted) {
		t.Errorf("%s, %v", got, err)
	}
}
