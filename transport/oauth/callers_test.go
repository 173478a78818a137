package oauth

import (
	"testing"
	"time"
)

// TestOthers: where programs do not sign in, no token of one that did counts, and everybody else's do.
func TestOthers(t *testing.T) {
	r := newRig(t)
	id, _ := r.register(t, claude)
	token, _ := r.signedIn(t, id, "claude", "read *")
	own, err := r.Access.AddToken("kitchen", r.grant(t, "read *"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	others := Others{callers{r.Access}}
	for text, counts := range map[string]bool{token: false, own: true, "site's own": true} {
		if _, err := others.Bearer(text, true); (err == nil) != counts {
			t.Errorf("%q: %v", text, err)
		}
	}
}
