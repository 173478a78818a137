package state

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
)

// grantToken makes a token of a permission in words that an owner signs, who becomes the
// first where there is none.
func grantToken(b *access.Store, own identity.Key, name, words string) error {
	may, err := access.ParsePermissions(words)
	if err != nil {
		return err
	}
	g, err := access.Issue(own, access.Block{Audience: b.Site, Node: b.Site, Permissions: may})
	if err == nil && !b.Claimed() {
		err = b.Claim(access.Owner{ID: own.ID()})
	}
	if err != nil {
		return err
	}
	b.URL = "u"
	_, err = b.AddToken(name, g.Bytes(), time.Now().Add(time.Hour))
	return err
}

func hostClock() (time.Time, bool) { return time.Now(), false }

// TestAccessFiles: the access store's files are the site's alone, and it is not opened
// without them where they are damaged.
func TestAccessFiles(t *testing.T) {
	f := Folder(t.TempDir())
	b, err := OpenAccess(f, identity.New().ID(), hostClock)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(grantToken(b, identity.New(), "a", "read x, set x/y 1/h"), b.AdvanceClock(time.Now())); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{AccessFile, CountsFile} {
		if info, err := os.Stat(f.Path(name)); err != nil || OthersCanRead(info.Mode()) {
			t.Error(name, info, err)
		}
	}
	if again, err := OpenAccess(f, b.Site, hostClock); err != nil || len(again.Tokens()) != 1 {
		t.Error(err)
	}
	if err := os.WriteFile(f.Path(AccessFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAccess(f, b.Site, hostClock); err == nil || !strings.Contains(err.Error(), "move both away") {
		t.Error(err)
	}
}
