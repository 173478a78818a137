package backup

import (
	"bytes"
	"os"
	"testing"

	"agentsite/node/state"
)

// TestPublicCertificate: the certificate of the public name, of which an authority makes few, comes back with the site,
// with its account and its orders.
func TestPublicCertificate(t *testing.T) {
	f, _ := ownedFolder(t)
	kept := []byte(`{"directory":"https://authority.test/"}`)
	if err := f.WritePublic(kept); err != nil {
		t.Fatal(err)
	}
	o := restored(t, f)
	if got, err := o.Folder.Public(); err != nil || !bytes.Equal(got, kept) {
		t.Errorf("%s, %v", got, err)
	}
	if info, err := os.Stat(o.Folder.Path(state.PublicFile)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info.Mode(), err)
	}
}
