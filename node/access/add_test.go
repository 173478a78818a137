package access

import (
	"testing"
)

// TestReplace: a grant that replaces leaves its holder with no more than it permits, at once: what
// was moved by another grant of the same keys ends, and no such grant counts again. A renewal ends
// no lease. Other keys' grants stay.
func TestReplace(t *testing.T) {
	k := keys(6)
	site, ann, bob, kim, leo := k[0], k[1], k[2], k[3], k[4]
	type step struct {
		may          string
		moves, holds bool
	}
	steps := []step{{"read fan, set fan", true, true}, {"read fan, set fan", true, true}, {"set fan max 1h", true, false}, {"read fan", false, false}}
	for name, presented := range map[string]bool{"an owner's": false, "passed on, and presented": true} {
		t.Run(name, func(t *testing.T) {
			var s shelf
			b := s.open(t, site.ID())
			ended := 0
			b.OnEnd = func() { ended++ }
			wants(t, b.Claim(Owner{ID: ann.ID()}), "")
			root := grant(t, "read fan, set fan", ann, kim)
			_, err := b.AddGrant(root.Bytes())
			wants(t, err, "")
			var first *Grant
			for i, step := range steps {
				ended = 0
				g := grant(t, step.may, ann, leo)
				if presented {
					g, err = root.Delegate(kim, Block{Audience: leo.ID(), Permissions: words(t, step.may)})
					wants(t, err, "")
					_, err = b.Present(leo.ID(), g.Bytes())
				} else {
					_, err = b.ReplaceGrant(g.Bytes())
				}
				wants(t, err, "")
				if first == nil {
					first = g
				}
				if holds := b.MayHold(who(leo).ID, "fan/on"); i > 0 && holds != step.holds {
					t.Errorf("%s: its lease stays: %v", step.may, holds)
				}
				if any, _ := b.expiredBetween(built, built); i > 0 && !any && ended == 0 {
					t.Errorf("%s: OnEnd is not called", step.may)
				}
				_, err = b.Take(who(leo), setFan(), false)
				if (err == nil) != step.moves {
					t.Errorf("%s: it moves: %v", step.may, err)
				}
			}
			n := 0
			for _, g := range b.Grants() {
				if g.Audience() == leo.ID() {
					n++
				}
			}
			if n != 1 {
				t.Errorf("it has %d grants", n)
			}
			if presented {
				if !b.Withdraw(leo.ID()) || b.Version(who(leo)) != 0 || b.Withdraw(leo.ID()) {
					t.Error("it has what it gave up")
				}
				return
			}
			b = s.open(t, site.ID())
			_, err = b.Present(leo.ID(), first.Bytes())
			wants(t, err, errRevoked.Msg)
			wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
			_, err = b.ReplaceGrant(grant(t, "set fan", bob, leo).Bytes())
			wants(t, err, "")
			_, err = b.May(who(leo), readFan())
			wants(t, err, "")
		})
	}
}
