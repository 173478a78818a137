package access

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/node/identity"
)

// TestPresentedInMemory: a holder that endlessly delegates a grant for a second causes no write to
// the card. It fills only its own share, and evicts nothing of others.
func TestPresentedInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		site, owner, mallory, bob, cid := k[0], k[1], k[2], k[3], k[4]
		var writes, ended atomic.Int32
		b, err := NewStore(Options{
			Site: site.ID(), Build: built, SystemClock: func() (time.Time, bool) { return time.Now(), true },
			OnEnd:      func() { ended.Add(1) },
			SaveAccess: func([]byte) error { writes.Add(1); return nil }, SaveCounts: func([]byte) error { writes.Add(1); return nil },
		})
		wants(t, err, "")
		wants(t, b.Claim(Owner{ID: owner.ID()}), "")
		root, roots := grant(t, "read *", owner, mallory), grant(t, "read *", owner, bob)
		_, err = b.AddGrant(root.Bytes())
		wants(t, err, "")
		writes.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		kept := make(chan struct{})
		go func() { b.Run(ctx); close(kept) }()
		defer func() { cancel(); <-kept }()
		present := func(root *Grant, from identity.Key, until time.Time) (identity.ID, error) {
			to := identity.New().ID()
			g, err := root.Delegate(from, Block{Audience: to, Permissions: words(t, "read *"), Until: until.Unix()})
			wants(t, err, "")
			_, err = b.Present(to, g.Bytes())
			return to, err
		}
		for range 50 {
			for range maxPresentedPerRoot {
				to, err := present(root, mallory, time.Now().Add(time.Second))
				wants(t, err, "")
				p := agents.Principal{ID: to.String()}
				if got := b.Root(p); b.Version(p) == 0 || got != mallory.ID().String() {
					t.Fatal(b.Version(p), got)
				}
			}
			_, err := present(root, mallory, time.Now().Add(time.Second))
			wants(t, err, "maximum")
			time.Sleep(time.Second)
		}
		if writes.Load() != 0 || ended.Load() == 0 {
			t.Errorf("%d writes, and what they held has ended %d times", writes.Load(), ended.Load())
		}
		time.Sleep(saveDelay)
		if synctest.Wait(); writes.Load() != 1 {
			t.Errorf("%d writes, so that a start could revive what has ended, or too many", writes.Load())
		}
		for range maxPresentedPerRoot {
			_, err := present(root, mallory, time.Now().Add(time.Hour))
			wants(t, err, "")
		}
		_, err = b.Present(bob.ID(), roots.Bytes())
		wants(t, err, "")
		to, err := present(roots, bob, time.Now().Add(time.Hour))
		wants(t, err, "")
		wants(t, b.AddOwner(Owner{ID: cid.ID()}), "") // a change keeps them
		if b.Version(agents.Principal{ID: to.String()}) == 0 || b.Version(who(bob)) == 0 {
			t.Error("they are lost with a change of something else")
		}
		wants(t, b.Revoke(Revocation{Key: bob.ID()}), "")
		if b.Version(agents.Principal{ID: to.String()}) != 0 || b.Version(who(bob)) != 0 {
			t.Error("they outlive their revocation")
		}
		if n := len(b.Grants()); n != 1+maxPresentedPerRoot {
			t.Errorf("%d grants", n)
		}
	})
}

// TestPresentedNearer: a delegate that delegates further to keys of its own cannot evict the
// holders before it in the chain.
func TestPresentedNearer(t *testing.T) {
	k := keys(6)
	owner, ann, bob, mallory := k[1], k[2], k[3], k[4]
	b := (&shelf{}).open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: owner.ID()}), "")
	present := func(g *Grant) error {
		_, err := b.Present(g.Audience(), g.Bytes())
		return err
	}
	anns := grant(t, "set fan", owner, ann)
	bobs, mallorys := passOn(t, anns, ann, bob), passOn(t, anns, ann, mallory)
	for range maxPresentedPerRoot {
		g := passOn(t, mallorys, mallory, identity.New())
		wants(t, present(g), "")
		_, err := b.Take(agents.Principal{ID: g.Audience().String()}, setFan(), false)
		wants(t, err, "")
	}
	wants(t, present(anns), "")
	wants(t, present(bobs), "")
	wants(t, present(passOn(t, mallorys, mallory, identity.New())), "maximum")
	for _, p := range []identity.Key{ann, bob} {
		if b.Version(who(p)) == 0 {
			t.Error("it has lost its place again")
		}
	}
	if n, leases := len(b.Grants()), len(b.leases); n != maxPresentedPerRoot || leases != maxPresentedPerRoot-2 {
		t.Errorf("%d grants are kept, and %d leases", n, leases)
	}
	if any, _ := b.expiredBetween(time.Now(), time.Now()); !any {
		t.Error("OnEnd is not called, although two have no permission any more")
	}
}

// TestPresentedAmidChanges: one who brings grants along, again and again, disturbs no owner who
// changes what is kept.
func TestPresentedAmidChanges(t *testing.T) {
	k := keys(4)
	owner, ann, bob := k[1], k[2], k[3]
	b := (&shelf{}).open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: owner.ID()}), "")
	anns := grant(t, "read *", owner, ann)
	bring := func(g *Grant) error {
		_, err := b.Present(g.Audience(), g.Bytes())
		return err
	}
	for range maxPresentedPerRoot {
		wants(t, bring(passOn(t, anns, ann, identity.New())), "")
	}
	more := passOn(t, anns, ann, identity.New())
	done, brought := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(brought)
		for {
			select {
			case <-done:
				return
			default:
				bring(more)
			}
		}
	}()
	for range 2000 {
		wants(t, b.AddOwner(Owner{ID: bob.ID()}), "")
	}
	close(done)
	<-brought
}

// TestRoot: the account that a principal is counted under.
func TestRoot(t *testing.T) {
	k := keys(5)
	site, owner, ann, bob, cid := k[0], k[1], k[2], k[3], k[4]
	b := (&shelf{}).open(t, site.ID())
	wants(t, b.Claim(Owner{ID: owner.ID()}), "")
	present := func(g *Grant) {
		t.Helper()
		_, err := b.Present(g.Audience(), g.Bytes())
		wants(t, err, "")
	}
	root := func(who agents.Principal, want string) {
		t.Helper()
		if got := b.Root(who); got != want {
			t.Errorf("%s counts with %s, want %s", who.ID, got, want)
		}
	}
	root(who(ann), ann.ID().String()) // nothing yet
	present(grant(t, "read *", owner, ann))
	present(grant(t, "read *", owner, ann, bob))
	present(grant(t, "read *", owner, ann, bob, cid))
	for _, p := range []identity.Key{ann, bob, cid} {
		root(who(p), ann.ID().String())
	}
	present(grant(t, "read *", owner, cid)) // its own goes before what others passed on
	root(who(cid), cid.ID().String())
	for name, g := range map[string]*Grant{"t": grant(t, "read *", owner, site), "passed": grant(t, "read *", owner, bob, site)} {
		token, err := b.AddToken(name, g.Bytes(), time.Now().Add(time.Hour))
		wants(t, err, "")
		p, err := b.Bearer(token)
		wants(t, err, "")
		want := p.ID
		if len(g.Blocks) > 1 {
			want = bob.ID().String()
		}
		root(p, want)
	}
}
