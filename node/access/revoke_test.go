package access

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/identity"
)

// TestFormerOwner: an owner's grants and leases end permanently with its ownership, also if it
// becomes an owner again; then it can grant anew.
func TestFormerOwner(t *testing.T) {
	k := keys(6)
	site, ann, bob, kim := k[0], k[1], k[2], k[3]
	for _, recovered := range []bool{false, true} {
		var s shelf
		b := s.open(t, site.ID())
		wants(t, b.Claim(Owner{ID: ann.ID()}), "")
		wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
		kept, brought, held := grant(t, "set fan", bob, kim), grant(t, "set fan", bob, kim), grant(t, "set fan", ann, bob)
		_, err := b.AddGrant(kept.Bytes())
		wants(t, err, "")
		_, err = b.AddToken("desk", grant(t, "set fan", bob, site).Bytes(), time.Now().Add(time.Hour))
		wants(t, err, "")
		if recovered {
			code, err := b.NewRecovery()
			wants(t, err, "")
			wants(t, b.Recover(t.Context(), code, Owner{ID: ann.ID()}), "")
		} else {
			wants(t, b.RemoveOwner(bob.ID()), "")
		}
		wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
		for range 2 {
			for _, g := range []*Grant{kept, brought} {
				_, err = may(b, who(kim), setFan(), g)
				wants(t, err, errRevoked.Msg)
			}
			_, err = may(b, who(bob), setFan(), held)
			wants(t, err, errRevoked.Msg)
			if len(b.Tokens()) != 0 || len(b.Grants()) != 0 {
				t.Error(b.Tokens(), b.Grants())
			}
			b = s.open(t, site.ID())
		}
		_, err = b.AddGrant(grant(t, "set fan", bob, kim).Bytes())
		wants(t, err, "")
		desk, err := b.AddToken("desk", grant(t, "set fan", bob, site).Bytes(), time.Now().Add(time.Hour))
		wants(t, err, "")
		b = s.open(t, site.ID())
		_, err = b.May(who(kim), setFan())
		wants(t, err, "")
		bearer, err := b.Bearer(desk)
		wants(t, err, "")
		_, err = b.May(bearer, setFan())
		wants(t, err, "")
		wants(t, b.Revoke(Revocation{Key: bob.ID()}), "owners remove")
		_, err = b.May(who(kim), setFan())
		wants(t, err, "")
	}
}

// TestFormerOwnersSession: a former owner is no owner in a session that began before.
func TestFormerOwnersSession(t *testing.T) {
	k := keys(3)
	b := (&shelf{}).open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "")
	p := agents.Principal{ID: k[2].ID().String(), Owner: true}
	_, err := b.Take(p, setFan(), false)
	wants(t, err, "")
	if !b.CanSee(p, setFan()) || !b.Owns(p.ID) {
		t.Error("it is an owner")
	}
	wants(t, b.RemoveOwner(k[2].ID()), "")
	_, err = b.Take(p, setFan(), true)
	wants(t, err, "you lack the permission")
	if b.CanSee(p, setFan()) || b.Owns(p.ID) {
		t.Error("it is no owner any more")
	}
}

// TestHolds: a lease ends with the grant by which the output was moved, also if another grant would
// have allowed the move under other conditions. An owner's lease stays.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		ann, bob, kim, lea := k[1], k[2], k[3], k[4]
		var s shelf
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: ann.ID()}), "")
		wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
		once, confirmed := grant(t, "set fan 1/h", ann, kim), grant(t, "set fan confirm", ann, kim)
		brief, err := Issue(ann, Block{Audience: lea.ID(), Until: time.Now().Add(time.Minute).Unix(), Permissions: words(t, "set fan")})
		wants(t, err, "")
		for _, g := range []*Grant{once, confirmed, brief, grant(t, "set fan 5/h", ann, lea)} {
			_, err := b.AddGrant(g.Bytes())
			wants(t, err, "")
		}
		take := func(k identity.Key, ok bool) {
			t.Helper()
			_, err := b.Take(who(k), setFan(), ok)
			wants(t, err, "")
		}
		holds := func(k identity.Key, want bool) {
			t.Helper()
			if b.MayHold(k.ID().String(), "fan/on") != want || b.MayHold(k.ID().String(), "fan/speed") && !b.file.owns(k.ID()) {
				t.Error("it holds:", !want)
			}
		}
		holds(kim, false)
		take(kim, false)
		holds(kim, true)
		take(kim, false) // asks for a confirmation, and does nothing
		wants(t, b.Revoke(Revocation{Block: once.ID()}), "")
		holds(kim, false)
		take(kim, true)
		holds(kim, true)
		wants(t, b.Revoke(Revocation{Key: kim.ID()}), "")
		holds(kim, false)
		take(lea, false)
		holds(lea, true)
		time.Sleep(time.Minute)
		holds(lea, false)
		take(lea, false)
		holds(lea, true)
		holds(bob, true)
		wants(t, b.RemoveOwner(bob.ID()), "")
		holds(bob, false)
	})
}

// TestHoldsByAll: a call by another grant, which may have failed, does not keep an output away from
// safe when the grant by which it was moved ends.
func TestHoldsByAll(t *testing.T) {
	k := keys(3)
	ann, kim := k[1], k[2]
	b := (&shelf{}).open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: ann.ID()}), "")
	wide, narrow := grant(t, "set fan 50..100", ann, kim), grant(t, "set fan 0..10", ann, kim)
	for _, g := range []*Grant{wide, narrow} {
		_, err := b.AddGrant(g.Bytes())
		wants(t, err, "")
	}
	set := func(to float64) {
		t.Helper()
		_, err := b.Take(who(kim), agents.Ask{Tool: "set_level", Points: []string{"fan/speed"}, Effect: agents.Acts, Value: device.Number(to)}, false)
		wants(t, err, "")
	}
	holds := func() bool { return b.MayHold(kim.ID().String(), "fan/speed") }
	set(100)
	set(5) // which comes too late, say: it stays at 100
	if !holds() {
		t.Error("both count, and nothing is held")
	}
	wants(t, b.Revoke(Revocation{Block: wide.ID()}), "")
	if holds() {
		t.Error("it is held at a value that nobody may set any more")
	}
	set(5)
	if !holds() {
		t.Error("what was moved by the grant that counts does not stay")
	}
}

// TestRevocationsHold: owners add, remove, grant and revoke in any order. No grant counts whose
// issuer is no owner, or one of whose keys was revoked after an owner deposited it. A grant that an
// owner deposits counts.
func TestRevocationsHold(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 3))
	k := keys(5)
	site, ann, bob, kim, lea := k[0], k[1], k[2], k[3], k[4]
	names := map[identity.ID]string{ann.ID(): "ann", bob.ID(): "bob", kim.ID(): "kim", lea.ID(): "lea"}
	counted := 0
	for range *schedule {
		var s shelf
		b := s.open(t, site.ID())
		wants(t, b.Claim(Owner{ID: ann.ID()}), "")
		var grants []*Grant
		for range 2 {
			grants = append(grants, grant(t, "set fan", ann, kim), grant(t, "set fan", ann, bob), grant(t, "set fan", bob, kim),
				grant(t, "set fan", bob, lea), grant(t, "set fan", ann, kim, lea))
		}
		grants = append(grants, passOn(t, grants[0], kim, lea), passOn(t, grants[2], kim, lea))
		// The state of the model: when a block was last deposited, when a key was revoked, and the
		// events.
		deposited, revoked, happened := map[Hash]int{}, map[identity.ID]int{}, []string{}
		bobOwns := false
		for now := 1; now < 30; now++ {
			g := grants[rng.IntN(len(grants))]
			key := []identity.Key{bob, kim, lea}[rng.IntN(3)].ID()
			switch rng.IntN(7) {
			case 0, 1:
				if _, err := b.AddGrant(g.Bytes()); err == nil {
					deposited[g.ID()] = now
					happened = append(happened, fmt.Sprint("deposit ", slices.Index(grants, g)))
					if _, err := b.May(who(k[slices.IndexFunc(k, func(k identity.Key) bool { return k.ID() == g.Audience() })]), setFan()); err != nil {
						t.Fatalf("seed %d: what was deposited does not count after %v: %v", seed, happened, err)
					}
				}
			case 2:
				b.Present(g.Audience(), g.Bytes())
			case 3:
				if b.Revoke(Revocation{Key: key}) == nil {
					revoked[key] = now
					happened = append(happened, "revoke "+names[key])
				}
			case 4:
				if bobOwns = !bobOwns; bobOwns {
					wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
				} else {
					wants(t, b.RemoveOwner(bob.ID()), "")
					revoked[bob.ID()] = now
				}
				happened = append(happened, fmt.Sprint("bob owns: ", bobOwns))
			case 5:
				b = s.open(t, site.ID())
			}
			for n, g := range grants {
				may := g.Issuer == ann.ID() || bobOwns
				last := g.ID()
				for i, block := range g.Blocks {
					since := max(deposited[g.ids[i]], deposited[last])
					may = may && (revoked[block.Audience] == 0 || revoked[block.Audience] < since)
					if i == 0 {
						may = may && (revoked[g.Issuer] == 0 || revoked[g.Issuer] < since)
					}
				}
				if b.checkValid(credential{grant: g}, 0) != nil {
					continue
				}
				if counted++; !may {
					t.Fatalf("seed %d: grant %d counts after %v", seed, n, happened)
				}
			}
		}
	}
	t.Log(counted, "times a grant counted")
	if counted < *schedule {
		t.Error("too few counted for this to mean anything")
	}
}

func passOn(t *testing.T, g *Grant, from, to identity.Key) *Grant {
	t.Helper()
	g, err := g.Delegate(from, Block{Audience: to.ID(), Permissions: words(t, "set fan")})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestRevokedOnAFullDisk: a revocation that the disk did not take is stored with the next change, or when Run saves,
// and does not count for what an owner gives afterwards.
func TestRevokedOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(4)
		site, ann, bob, kim := k[0], k[1], k[2], k[3]
		for name, next := range map[string]func(*testing.T, *Store){
			"a change": func(t *testing.T, b *Store) { wants(t, b.AddOwner(Owner{ID: kim.ID()}), "") },
			"the stop": func(t *testing.T, b *Store) {
				ctx, stop := context.WithCancel(t.Context())
				stop()
				b.Run(ctx)
			},
			"the hour": func(t *testing.T, b *Store) {
				ctx, stop := context.WithTimeout(t.Context(), saveInterval+time.Second)
				defer stop()
				b.Run(ctx)
			},
		} {
			var s shelf
			b := s.open(t, site.ID())
			wants(t, b.Claim(Owner{ID: ann.ID()}), "")
			_, err := b.AddGrant(grant(t, "set fan", ann, bob).Bytes())
			wants(t, err, "")
			desk, err := b.AddToken("desk", grant(t, "set fan", ann, site).Bytes(), time.Time{})
			wants(t, err, "")
			s.full = errors.New("no space left on device")
			wants(t, b.Revoke(Revocation{Token: "desk"}), "restart would undo")
			wants(t, b.Revoke(Revocation{Key: bob.ID()}), "restart would undo")
			s.full = nil
			next(t, b)
			for _, is := range []*Store{b, s.open(t, site.ID())} {
				if len(is.Tokens()) > 0 || len(is.Grants()) > 0 {
					t.Errorf("after %s: %d tokens, %d grants", name, len(is.Tokens()), len(is.Grants()))
				}
			}
			if counts(b, desk) {
				t.Errorf("after %s the token counts", name)
			}
			_, err = b.AddGrant(grant(t, "set fan", ann, bob).Bytes())
			wants(t, err, "")
			desk, err = b.AddToken("desk", grant(t, "set fan", ann, site).Bytes(), time.Time{})
			wants(t, err, "")
			_, err = b.May(who(bob), setFan())
			wants(t, err, "")
			bearer, err := b.Bearer(desk)
			wants(t, err, "")
			_, err = b.May(bearer, setFan())
			wants(t, err, "")
		}
	})
}
