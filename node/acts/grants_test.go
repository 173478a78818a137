package acts

import (
	"testing"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
)

// TestFormerSignIns: a program that signed in at another name than the present one is listed with it, and is revoked as
// others are. When that name comes back it is listed as others are.
func TestFormerSignIns(t *testing.T) {
	key, owner := identity.New(), identity.New()
	store, err := access.NewStore(access.Options{
		Site: key.ID(), URL: "https://lan/mcp", SystemClock: func() (time.Time, bool) { return time.Now(), true },
		SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Claim(access.Owner{ID: owner.ID()}); err != nil {
		t.Fatal(err)
	}
	may, err := access.ParsePermissions("read *")
	if err != nil {
		t.Fatal(err)
	}
	g, err := access.Issue(owner, access.Block{Audience: key.ID(), Permissions: may})
	if err != nil {
		t.Fatal(err)
	}
	const here, elsewhere = "https://here.example/mcp", "https://elsewhere.example/mcp"
	store.SetSignInURL(here)
	if _, err := store.AddSignIn("claude", g.Bytes(), access.SignIn{Client: "Claude", Host: "claude.ai"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	s := &Site{Access: store, Addresses: func() []string { return nil }}
	for _, c := range []struct{ url, former string }{{here, ""}, {elsewhere, here}, {here, ""}, {elsewhere, here}} {
		store.SetSignInURL(c.url)
		if all := s.access().Grants; len(all) != 1 || all[0].Former != c.former {
			t.Errorf("at %s: %+v", c.url, all)
		}
	}
	r, err := s.revocation("claude")
	if err == nil {
		err = store.Revoke(r)
	}
	if err != nil || len(s.access().Grants) != 0 {
		t.Error(err, s.access().Grants)
	}
}
