package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
)

const accessLife = 24 * time.Hour

// client is a client that signs in, with tokens that the tests choose.
type client struct{ name string }

// pair is the n-th pair of tokens of a client.
func (c client) pair(n string) (access string, refresh Hash, p Pair) {
	secret := sha256.Sum256([]byte(c.name + n))
	access = SignInPrefix + hex.EncodeToString(secret[:])
	p.Access, _ = HashSignIn(access)
	p.Refresh = sha256.Sum256([]byte("refresh" + c.name + n))
	return access, p.Refresh, p
}

func (c client) signIn(n string) SignIn {
	_, _, p := c.pair(n)
	in := SignIn{Client: c.name, Host: "client.example", ID: sha256.Sum256([]byte(c.name)), Pair: p, Unused: true}
	copy(in.Family[:], c.name)
	return in
}

func (c client) refresh(b *Store, token Hash, n string) error {
	in := c.signIn(n)
	_, _, err := b.Refresh(in.Family, in.ID, token, false, func(int64) Pair { return in.Pair }, accessLife)
	return err
}

// signInStore is a store with an owner, at an address where clients sign in.
func signInStore(t *testing.T, s *shelf, k []identity.Key) *Store {
	t.Helper()
	b := s.open(t, k[0].ID())
	b.SetSignInURL("https://here/mcp")
	if !b.Claimed() {
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	}
	return b
}

func counts(b *Store, token string) bool { _, err := b.Bearer(token); return err == nil }

// TestRefresh: an answer may be lost, and two may ask at once; what was replaced by a pair that is used ends
// the sign-in when it comes again, also after a restart.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s, c := keys(2), shelf{}, client{"claude"}
		b := signInStore(t, &s, k)
		g := grant(t, "read fan", k[1], k[0]).Bytes()
		_, err := b.AddSignIn("claude", g, c.signIn("1"), accessLife)
		wants(t, err, "")
		access1, refresh1, _ := c.pair("1")
		access2, refresh2, _ := c.pair("2")
		if !counts(b, access1) || counts(b, access2) {
			t.Fatal("the first access token does not count, or another does")
		}
		for range 3 { // its answers were lost
			wants(t, c.refresh(b, refresh1, "2"), "")
			b = signInStore(t, &s, k)
		}
		in := c.signIn("2")
		_, _, err = b.Refresh(in.Family, sha256.Sum256([]byte("another client")), refresh1, false,
			func(int64) Pair { return in.Pair }, accessLife)
		wants(t, err, "unknown or ended")
		if counts(b, access1) || !counts(b, access2) {
			t.Error("the access tokens are not replaced")
		}
		b = signInStore(t, &s, k)
		wants(t, c.refresh(b, refresh2, "3"), "")
		wants(t, c.refresh(b, refresh2, "3"), "") // not used yet
		if err := c.refresh(b, refresh1, "2"); !errors.Is(err, ErrReplayed) {
			t.Errorf("a refresh token that was replaced: %v", err)
		}
		access3, refresh3, _ := c.pair("3")
		wants(t, c.refresh(b, refresh3, "4"), "unknown or ended")
		if counts(b, access3) || len(b.Tokens()) > 0 {
			t.Error("the sign-in did not end")
		}
	})
}

// TestRefreshUsed: the use of the new access token alone ends the former refresh token, once another process of the
// client had the time to ask with it.
func TestRefreshUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s, c := keys(2), shelf{}, client{"claude"}
		b := signInStore(t, &s, k)
		_, err := b.AddSignIn("claude", grant(t, "read fan", k[1], k[0]).Bytes(), c.signIn("1"), accessLife)
		wants(t, err, "")
		_, refresh1, _ := c.pair("1")
		access2, _, _ := c.pair("2")
		wants(t, c.refresh(b, refresh1, "2"), "")
		if !counts(b, access2) {
			t.Fatal("the new access token does not count")
		}
		b = signInStore(t, &s, k)
		time.Sleep(samePair - time.Second)
		wants(t, c.refresh(b, refresh1, "2"), "")
		if !counts(b, access2) {
			t.Error("the same pair does not count")
		}
		time.Sleep(time.Second)
		if err := c.refresh(b, refresh1, "2"); !errors.Is(err, ErrReplayed) {
			t.Error(err)
		}
	})
}

// TestSignInEnds: an access token ends by itself, and with the grant; so does the refresh token.
func TestSignInEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s, c := keys(2), shelf{}, client{"claude"}
		b := signInStore(t, &s, k)
		ends := soon(b, 30*time.Hour)
		g, err := Issue(k[1], Block{Audience: k[0].ID(), Permissions: words(t, "read fan"), Until: EndSecond(ends)})
		wants(t, err, "")
		left, err := b.AddSignIn("claude", g.Bytes(), c.signIn("1"), accessLife)
		wants(t, err, "")
		access1, refresh1, _ := c.pair("1")
		access2, refresh2, _ := c.pair("2")
		time.Sleep(left - time.Minute)
		if !counts(b, access1) {
			t.Error("ended early")
		}
		time.Sleep(time.Minute)
		if counts(b, access1) {
			t.Error("it did not end")
		}
		wants(t, c.refresh(b, refresh1, "2"), "")
		if !counts(b, access2) {
			t.Error("refreshed, and does not count")
		}
		time.Sleep(7 * time.Hour)
		if counts(b, access2) {
			t.Error("it outlived the grant")
		}
		wants(t, c.refresh(b, refresh2, "3"), "ended at")
	})
}

// TestSignInClock: while the time is not known, nothing is decided, and nothing ends.
func TestSignInClock(t *testing.T) {
	k, s, c := keys(2), shelf{}, client{"claude"}
	b := signInStore(t, &s, k)
	_, err := b.AddSignIn("claude", grant(t, "read fan", k[1], k[0]).Bytes(), c.signIn("1"), accessLife)
	wants(t, err, "")
	wants(t, b.Save(), "")
	s.adrift = true
	b = signInStore(t, &s, k)
	access1, refresh1, _ := c.pair("1")
	if _, err := b.Bearer(access1); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
	if err := c.refresh(b, refresh1, "2"); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
	if _, err := b.Bearer(SignInPrefix + "00"); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	b.LastKnown = true
	if !counts(b, access1) {
		t.Error("the last known time is not used")
	}
	b.LastKnown, s.adrift = false, false
	wants(t, c.refresh(b, refresh1, "2"), "")
}

// TestSignInGrant: the grant of a client that is signed in is widened, narrowed and ended, and it stays the
// same principal; the same client signs in again in its own place only.
func TestSignInGrant(t *testing.T) {
	k, s, c := keys(2), shelf{}, client{"claude"}
	b := signInStore(t, &s, k)
	may := func(want bool, ask agents.Ask) {
		t.Helper()
		access, _, _ := c.pair("1")
		p, err := b.Bearer(access)
		wants(t, err, "")
		if _, err := b.May(p, ask); (err == nil) != want {
			t.Errorf("%s: %v", ask.Name(), err)
		}
	}
	_, err := b.AddSignIn("claude", grant(t, "read fan", k[1], k[0]).Bytes(), c.signIn("1"), accessLife)
	wants(t, err, "")
	access, _, _ := c.pair("1")
	before, err := b.Bearer(access)
	wants(t, err, "")
	may(false, setFan())
	wide := grant(t, "read fan, set fan", k[1], k[0]).Bytes()
	wants(t, b.ReplaceTokenGrant("claude", wide), "")
	may(true, setFan())
	if words := b.Scopes(before); !slices.Equal(words, []string{"read", "set"}) {
		t.Error(words)
	}
	ended := 0
	b.OnEnd = func() { ended++ }
	_, err = b.Take(before, setFan(), false)
	wants(t, err, "")
	wants(t, b.ReplaceTokenGrant("claude", grant(t, "read fan, set fan", k[1], k[0]).Bytes()), "")
	if !b.MayHold(before.ID, "fan/on") {
		t.Error("a grant of the same permissions ended a lease")
	}
	wants(t, b.ReplaceTokenGrant("claude", grant(t, "read fan", k[1], k[0]).Bytes()), "")
	may(false, setFan())
	if b.MayHold(before.ID, "fan/on") || ended != 2 {
		t.Error("a narrower grant ended no lease")
	}
	wants(t, b.ReplaceTokenGrant("claude", wide), "revoked")
	if after, err := b.Bearer(access); err != nil || after != before {
		t.Error(after, err)
	}
	again := c.signIn("2")
	again.ID, again.Family = sha256.Sum256([]byte("registered anew")), [16]byte{1}
	if name := b.SignInOf(again); name != "claude" {
		t.Error(name)
	}
	_, err = b.AddSignIn("claude", grant(t, "set fan", k[1], k[0]).Bytes(), again, accessLife)
	wants(t, err, "")
	access2, refresh2, _ := c.pair("2")
	if after, err := b.Bearer(access2); err != nil || after != before || counts(b, access) {
		t.Error(after, err)
	}
	_, refresh1, _ := c.pair("1")
	wants(t, c.refresh(b, refresh1, "3"), "unknown or ended") // and it does not end the new one
	_, err = b.AddSignIn("claude", wide, client{"evil"}.signIn("1"), accessLife)
	wants(t, err, "not this client's")
	_, err = b.CheckSignIn("claude", wide, client{"evil"}.signIn("1"))
	wants(t, err, "not this client's")
	wants(t, b.Revoke(Revocation{Token: "claude"}), "")
	if counts(b, access2) {
		t.Error("revoked, and it counts")
	}
	_, _, err = b.Refresh(again.Family, again.ID, refresh2, false, func(int64) Pair { return again.Pair }, accessLife)
	wants(t, err, "unknown or ended")
}

// TestSignInAddress: a token is for the address at which its client signed in.
func TestSignInAddress(t *testing.T) {
	k, s, c := keys(2), shelf{}, client{"claude"}
	b := signInStore(t, &s, k)
	_, err := b.AddSignIn("claude", grant(t, "read fan", k[1], k[0]).Bytes(), c.signIn("1"), accessLife)
	wants(t, err, "")
	access, refresh, _ := c.pair("1")
	b.SetSignInURL("https://there/mcp")
	_, err = b.Bearer(access)
	wants(t, err, "another address")
	wants(t, c.refresh(b, refresh, "2"), "unknown or ended")
}

// TestCaller: the store tells when the bearer of a token last called, and not of one that was refused.
func TestCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s, c := keys(2), shelf{}, client{"claude"}
		b := signInStore(t, &s, k)
		_, err := b.AddSignIn("claude", grant(t, "read fan", k[1], k[0]).Bytes(), c.signIn("1"), accessLife)
		wants(t, err, "")
		token, _, _ := c.pair("1")
		called := func() time.Duration {
			id, ago := b.Caller(b.Tokens()[0])
			if ago > 0 {
				p, err := b.Bearer(token)
				wants(t, err, "")
				if p.ID != id {
					t.Errorf("%s calls, and not %s", p.ID, id)
				}
			}
			return ago
		}
		if called() != 0 {
			t.Error("it has called")
		}
		b.SetSignInURL("https://there/mcp")
		if counts(b, token) || called() != 0 {
			t.Error("what was refused is a call")
		}
		b.SetSignInURL("https://here/mcp")
		if !counts(b, token) {
			t.Fatal("it does not count")
		}
		time.Sleep(time.Hour)
		if ago := called(); ago != time.Hour {
			t.Error(ago)
		}
	})
}
