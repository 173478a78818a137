package bundle

import (
	"encoding/hex"
	"testing"

	"agentsite/node/identity"
)

// TestStoredForms: bundles that are signed, and imports that are stored, keep their bytes from version to version.
func TestStoredForms(t *testing.T) {
	sealed, err := Seal(identity.New(), good())
	if err != nil {
		t.Fatal(err)
	}
	var f file
	if err := codec.Decode(sealed, &f); err != nil {
		t.Fatal(err)
	}
	const want = "a6016566726f7374026472756c650378397768656e3a206e6565642f74656d7065726174757265203c2035204365" +
		"6c0a686f6c643a207b206e6565642f6865617465723a206f6e207d0a0482a3016668656174657202667377697463" +
		"6804657761726d73a3016b74656d7065726174757265026b6d6561737572656d656e74036343656c057673657420" +
		"6e6565642f686561746572206d617820356d061a6ab13b80"
	if got := hex.EncodeToString(f.Content); got != want {
		t.Errorf("the content is signed as %s, not %s", got, want)
	}
	all := Imports{
		All: []Import{{Name: "frost", File: []byte("file"), Bound: []BoundNeed{{"heater", "a/b"}, {"t", "c/d"}}}},
	}
	stored, err := all.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const wantStored = "a301010281a4016566726f7374024466696c650382a201666865617465720263612f62a20161740263632f6404f403f6"
	if got := hex.EncodeToString(stored); got != wantStored {
		t.Errorf("an import is stored as %s, not %s", got, wantStored)
	}
}
