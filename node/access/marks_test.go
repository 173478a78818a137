package access

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/node/identity"
)

// TestReplacedForGood: a grant that was replaced is refused, over restarts and whether the site saw
// it or not, also after the newer one was withdrawn, was revoked or has expired; so is what was passed
// on from it. What an owner stores counts.
func TestReplacedForGood(t *testing.T) {
	k := keys(5)
	site, ann, kim, leo, mia := k[0], k[1], k[2], k[3], k[4]
	ends := map[string]func(*testing.T, *Store, *Grant){
		"stays":        func(*testing.T, *Store, *Grant) {},
		"is withdrawn": func(_ *testing.T, b *Store, _ *Grant) { b.Withdraw(leo.ID()) },
		"is revoked":   func(t *testing.T, b *Store, g *Grant) { wants(t, b.Revoke(Revocation{Block: g.ID()}), "") },
		"expires":      func(*testing.T, *Store, *Grant) { time.Sleep(time.Hour) },
	}
	for _, way := range []string{"by its holder", "by an owner", "by an owner of a site that has started since"} {
		for end, does := range ends {
			t.Run(way+", the newer one "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var s shelf
					b := s.open(t, site.ID())
					wants(t, b.Claim(Owner{ID: ann.ID()}), "")
					root := grant(t, "read fan, set fan", ann, kim)
					if way == "by its holder" {
						_, err := b.AddGrant(root.Bytes())
						wants(t, err, "")
					}
					give := func(may string, until time.Time) (g *Grant) {
						t.Helper()
						time.Sleep(time.Second)
						block, err := Block{Audience: leo.ID(), Permissions: words(t, may), Until: EndSecond(until)}, error(nil)
						if way == "by its holder" {
							g, err = root.Delegate(kim, block)
						} else {
							g, err = Issue(ann, block)
						}
						wants(t, err, "")
						return g
					}
					present := func(g *Grant, want string) {
						t.Helper()
						_, err := b.Present(g.Audience(), g.Bytes())
						wants(t, err, want)
					}
					restart := func() {
						wants(t, b.Save(), "") // as Run does
						b = s.open(t, site.ID())
					}
					wide := give("read fan, set fan", time.Time{})
					present(wide, "")
					if way == "by an owner of a site that has started since" {
						restart()
					}
					narrow := give("read fan", time.Now().Add(time.Hour))
					if way == "by its holder" {
						present(narrow, "")
					} else {
						_, err := b.ReplaceGrant(narrow.Bytes())
						wants(t, err, "")
					}
					passed, err := wide.Delegate(leo, Block{Audience: mia.ID(), Permissions: words(t, "set fan")})
					wants(t, err, "")
					does(t, b, narrow)
					for range 2 {
						for _, g := range []*Grant{wide, passed} {
							_, err := b.Present(g.Audience(), g.Bytes())
							if !errors.Is(err, errReplaced) && !errors.Is(err, errRevoked) {
								t.Errorf("%v", err)
							}
						}
						for _, p := range []identity.Key{leo, mia} {
							if _, err := b.Take(who(p), setFan(), false); err == nil {
								t.Error("it moves by what was replaced")
							}
						}
						restart()
					}
					present(give("set fan", time.Time{}), "")
					_, err = b.Take(who(leo), setFan(), false)
					wants(t, err, "")
				})
			})
		}
	}
}

// TestMarksBounded: a holder that passes its grant on any number of times drops no mark of its own
// grant, nor one of other holders, and what an owner stores on the site is not refused for a mark.
func TestMarksBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		owner, ann, bob := k[1], k[2], k[3]
		b := (&shelf{}).open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: owner.ID()}), "")
		give := func(to identity.Key) *Grant {
			time.Sleep(time.Second)
			return grant(t, "set fan", owner, to)
		}
		wide, bobs, newer := give(ann), give(bob), give(bob)
		anns := give(ann)
		for _, g := range []*Grant{anns, newer} {
			_, err := b.Present(g.Audience(), g.Bytes())
			wants(t, err, "")
		}
		for range 2 * maxMarks {
			g := passOn(t, anns, ann, identity.New())
			_, err := b.Present(g.Audience(), g.Bytes())
			wants(t, err, "")
			b.Withdraw(g.Audience())
		}
		if len(b.marks) > maxMarks {
			t.Error(len(b.marks), "marks")
		}
		for _, g := range []*Grant{wide, bobs} {
			_, err := b.Present(g.Audience(), g.Bytes())
			wants(t, err, errReplaced.Msg)
		}
		_, err := b.AddGrant(bobs.Bytes())
		wants(t, err, "")
		_, err = b.Take(agents.Principal{ID: bob.ID().String()}, setFan(), false)
		wants(t, err, "")
	})
}

// TestMarksOfOthers: a holder drops no mark of a grant that another one passed on, by passing on its own.
func TestMarksOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(6)
		owner, ann, bob, cat, mal := k[1], k[2], k[3], k[4], k[5]
		b := (&shelf{}).open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: owner.ID()}), "")
		anns := grant(t, "set fan", owner, ann)
		bobs, mals := passOn(t, anns, ann, bob), passOn(t, anns, ann, mal)
		wide := passOn(t, bobs, bob, cat)
		time.Sleep(time.Second)
		narrow := passOn(t, bobs, bob, cat)
		present := func(g *Grant, want string) {
			t.Helper()
			_, err := b.Present(g.Audience(), g.Bytes())
			wants(t, err, want)
		}
		present(wide, "")
		present(narrow, "")
		present(wide, errReplaced.Msg)
		for range 2 * maxMarks {
			time.Sleep(time.Second)
			g := passOn(t, mals, mal, identity.New())
			present(g, "")
			b.Withdraw(g.Audience())
		}
		present(wide, errReplaced.Msg)
	})
}

// TestIssuedAhead: a grant of an issuer whose clock is a year ahead is refused, since no later one would replace it,
// and one of a clock that is some hours ahead is replaced the day after.
func TestIssuedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(4)
		owner, ann, bob := k[1], k[2], k[3]
		b := (&shelf{}).open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: owner.ID()}), "")
		anns := grant(t, "set fan", owner, ann)
		present := func(g *Grant) error {
			_, err := b.Present(g.Audience(), g.Bytes())
			return err
		}
		give := func(issued time.Time) *Grant {
			g, err := anns.Attenuate(ann, Block{Audience: bob.ID(), Permissions: words(t, "set fan"), Issued: issued.UnixNano()})
			wants(t, err, "")
			return g
		}
		ahead := give(time.Now().AddDate(1, 0, 0))
		if present(ahead) == nil || present(passOn(t, ahead, bob, k[0])) == nil {
			t.Error("a grant of next year is accepted")
		}
		wants(t, present(give(time.Now().Add(14*time.Hour))), "")
		time.Sleep(15 * time.Hour)
		wants(t, present(give(time.Now())), "")
	})
}
