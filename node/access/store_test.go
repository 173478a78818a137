package access

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/node/identity"
)

// shelf is where a Book keeps things.
type shelf struct {
	mu          sync.Mutex
	book, meter []byte
	full        error
	system      time.Duration // what the system's clock is off by
	adrift      bool          // nothing synchronises it
}

func (s *shelf) open(t testing.TB, site identity.ID) *Store {
	b, err := NewStore(Options{
		Site: site, URL: "u", Access: s.book, Counts: s.meter, Build: built,
		SaveAccess: func(b []byte) error { return s.save(&s.book, b) }, SaveCounts: func(b []byte) error { return s.save(&s.meter, b) },
		SystemClock: func() (time.Time, bool) { return time.Now().Add(s.system), !s.adrift },
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *shelf) save(to *[]byte, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full == nil {
		*to = bytes.Clone(b)
	}
	return s.full
}

var built = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before the time of a synctest bubble

func who(k identity.Key) agents.Principal { return agents.Principal{ID: k.ID().String()} }

func setFan() agents.Ask {
	return agents.Ask{Tool: "switch_output", Points: []string{"fan/on"}}
}

func readFan() agents.Ask {
	return agents.Ask{Tool: "read_points", Points: []string{"fan/on"}, Effect: agents.Reads}
}

func wants(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		site, ann, bob, cid, eve := k[0], k[1], k[2], k[3], k[4]
		var s shelf
		b := s.open(t, site.ID())
		mayBring := func(p agents.Principal, brought ...*Grant) error {
			_, err := may(b, p, setFan(), brought...)
			return err
		}
		const lack = "you lack the permission 'set fan/on'"
		g := grant(t, "set fan", ann, bob)
		wants(t, mayBring(who(bob)), lack)
		wants(t, mayBring(who(bob), g), "not an owner")
		wants(t, b.Claim(Owner{ID: ann.ID(), Name: "ann"}), "")
		wants(t, mayBring(who(bob), g), "")
		wants(t, mayBring(who(bob)), lack)
		wants(t, mayBring(who(eve), g), lack) // another's
		wants(t, mayBring(agents.Principal{}, g), lack)
		wants(t, mayBring(who(ann)), lack) // the key alone is nobody's authority
		wants(t, mayBring(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}), "")

		if _, err := b.AddGrant(g.Bytes()); err != nil {
			t.Fatal(err)
		}
		_, err := b.AddGrant(grant(t, "set fan", eve, bob).Bytes())
		wants(t, err, "not an owner")
		wants(t, mayBring(who(bob)), "")

		// Two grants add up, and the denial is the most helpful one.
		other, more := grant(t, "set fan 1/h", ann, eve), grant(t, "set lamp", ann, eve)
		for _, want := range []string{"", "again in"} {
			_, err = take(b, who(eve), setFan(), other, more)
			wants(t, err, want)
		}
		_, err = take(b, who(eve), agents.Ask{Tool: "switch_output", Points: []string{"lamp/on"}}, other, more)
		wants(t, err, "")
		_, err = take(b, who(eve), agents.Ask{Tool: "switch_output", Points: []string{"fan/on", "lamp/on"}}, other, more)
		wants(t, err, "you lack the permission") // but not within one call

		// Delegated, with a block that claims more than its parent permits.
		passed, err := g.Delegate(bob, Block{Audience: cid.ID(), Permissions: words(t, "set * max 1m")})
		if err != nil {
			t.Fatal(err)
		}
		l, err := may(b, who(cid), setFan(), passed)
		if err != nil || l.Lease != time.Minute {
			t.Error(l, err)
		}
		_, err = may(b, who(cid), agents.Ask{Tool: "switch_output", Points: []string{"lamp/on"}}, passed)
		wants(t, err, "set lamp/on")

		// For another site; later; over.
		issue := func(block Block) *Grant {
			block.Audience, block.Permissions = bob.ID(), words(t, "set lamp, set fan")
			g, err := Issue(ann, block)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		lamp := func(g *Grant) error {
			_, err := may(b, who(bob), agents.Ask{Tool: "switch_output", Points: []string{"lamp/on"}}, g)
			return err
		}
		now := time.Now().Unix()
		wants(t, lamp(issue(Block{Node: site.ID()})), "")
		wants(t, lamp(issue(Block{Node: eve.ID()})), "for another site, "+eve.ID().PeerID())
		wants(t, lamp(issue(Block{From: now + 10})), "begins at 2000-01-01T00:00:10Z")
		short := issue(Block{From: now, Until: now + 60})
		wants(t, lamp(short), "")
		time.Sleep(59 * time.Second)
		wants(t, lamp(short), "")
		time.Sleep(time.Second)
		wants(t, lamp(short), "ended at 2000-01-01T00:01:00Z")

		level := agents.Ask{Tool: "set_level", Points: []string{"fan/speed"}}
		ranged := grant(t, "set fan 0..80", ann, bob)
		if _, err := may(b, who(eve), level, ranged); sees(b, who(eve), level, ranged) || err == nil {
			t.Error("somebody sees what another may")
		}
		if !sees(b, who(bob), level, ranged) || sees(b, who(bob), agents.Ask{Tool: "set_level", Points: []string{"vent/angle"}}, ranged) || sees(b, agents.Principal{}, level, ranged) {
			t.Error("somebody sees too little, or too much")
		}
		if !b.CanSee(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, level) {
			t.Error("the owner does not see all")
		}

		// Stored grants are there after a start.
		b = s.open(t, site.ID())
		wants(t, mayBring(who(bob)), "")
		// Revoked: the key in the middle ends what it passed on.
		wants(t, mayBring(who(cid), passed), "")
		wants(t, b.Revoke(Revocation{Key: bob.ID()}), "")
		wants(t, mayBring(who(cid), passed), "revoked")
		wants(t, mayBring(who(bob), g), "revoked")
		if sees(b, who(cid), setFan(), passed) {
			t.Error("what is revoked is seen")
		}
		if len(b.Grants()) != 0 {
			t.Error(b.Grants())
		}
		b = s.open(t, site.ID())
		wants(t, mayBring(who(cid), passed), "revoked")
	})
}

// TestUnknownTime: a start without a network knows no time, until an owner tells it.
func TestUnknownTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		s := shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		bound, err := Issue(k[1], Block{Audience: k[2].ID(), Until: time.Now().Add(time.Hour).Unix(), Permissions: words(t, "set fan, read fan")})
		if err != nil {
			t.Fatal(err)
		}
		free := grant(t, "set fan", k[1], k[2])
		_, err = take(b, who(k[2]), setFan(), bound)
		wants(t, err, "")
		wants(t, b.Save(), "")

		s.adrift, s.system = true, -10*365*24*time.Hour
		time.Sleep(30 * time.Minute) // off
		b = s.open(t, k[0].ID())
		_, err = may(b, who(k[2]), setFan(), bound)
		wants(t, err, "not set: connect")
		_, err = may(b, who(k[2]), readFan(), bound)
		wants(t, err, "")
		_, err = may(b, who(k[2]), setFan(), free)
		wants(t, err, "")
		b.LastKnown = true
		_, err = may(b, who(k[2]), setFan(), bound)
		wants(t, err, "")
		b.LastKnown = false
		wants(t, b.AdvanceClock(time.Now()), "")
		_, err = may(b, who(k[2]), setFan(), bound)
		wants(t, err, "")
		time.Sleep(31 * time.Minute) // and it goes on by itself
		_, err = may(b, who(k[2]), setFan(), bound)
		wants(t, err, "ended")
		b = s.open(t, k[0].ID()) // which a clock that is set back does not undo
		time.Sleep(time.Hour)
		wants(t, b.AdvanceClock(time.Now().Add(-24*time.Hour)), "")
		_, err = may(b, who(k[2]), readFan(), bound)
		wants(t, err, "ended")
	})
}

// TestGrantedAgain: a key that was revoked has what an owner grants it afterwards, and
// nothing from before, also over a start and once it has owned the site.
func TestGrantedAgain(t *testing.T) {
	k := keys(6)
	s := shelf{}
	b := s.open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	before, passed := grant(t, "set fan", k[1], k[2]), grant(t, "set fan", k[1], k[3], k[2])
	_, err := b.AddGrant(before.Bytes())
	wants(t, err, "")
	wants(t, b.Revoke(Revocation{Key: k[2].ID()}), "")
	refused := func(g *Grant) {
		t.Helper()
		_, err := b.Present(g.Audience(), g.Bytes())
		wants(t, err, "was revoked")
		_, err = may(b, who(k[2]), setFan(), g)
		wants(t, err, "was revoked")
	}
	refused(before)
	refused(passed)
	again := grant(t, "read fan", k[1], k[2])
	refused(again) // until an owner deposits it
	_, err = b.AddGrant(again.Bytes())
	wants(t, err, "")
	b = s.open(t, k[0].ID())
	_, err = b.May(who(k[2]), readFan())
	wants(t, err, "")
	on, err := again.Delegate(k[2], Block{Audience: k[4].ID(), Permissions: words(t, "read fan")})
	wants(t, err, "")
	_, err = may(b, who(k[4]), readFan(), on)
	wants(t, err, "")
	_, err = b.May(who(k[2]), setFan())
	wants(t, err, "lack the permission")
	_, err = b.Present(k[2].ID(), before.Bytes())
	wants(t, err, "was revoked")
	wants(t, b.Revoke(Revocation{Key: k[2].ID()}), "")
	refused(again)
	wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "")
	wants(t, b.RemoveOwner(k[2].ID()), "")
	refused(before)
	refused(again)
}

// TestRevocationWaitsForNobody: neither it nor an answer waits for a disk that hangs.
func TestRevocationWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		s := shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		g := grant(t, "set fan", k[1], k[2])
		hang := make(chan struct{})
		b.SaveAccess = func([]byte) error { <-hang; return nil }
		go b.Revoke(Revocation{Block: g.ID()})
		synctest.Wait()
		_, err := may(b, who(k[2]), setFan(), g)
		wants(t, err, "revoked")
		close(hang)
	})
}

func TestUnreadable(t *testing.T) {
	for name, o := range map[string]Options{
		"a book":  {Access: []byte{1}},
		"a meter": {Counts: []byte("hello")},
	} {
		if _, err := NewStore(o); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v", name, err)
		}
	}
	newer, err := codec.Encode(map[int]any{1: 2, 99: "new"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewStore(Options{Access: newer})
	wants(t, err, "newer agentsite")
	_, err = NewStore(Options{Counts: newer})
	wants(t, err, "newer agentsite")
}

// TestOtherSite: the owners of one site do not become those of another, whose folder has their file.
func TestOtherSite(t *testing.T) {
	k, s := keys(3), shelf{}
	if err := s.open(t, k[0].ID()).Claim(Owner{ID: k[1].ID()}); err != nil {
		t.Fatal(err)
	}
	if b, err := NewStore(Options{Site: k[2].ID(), Access: s.book}); err == nil {
		t.Error("another site has the owners", b.Owners())
	}
}

func FuzzKept(f *testing.F) {
	k := keys(3)
	s := shelf{}
	b := s.open(f, k[0].ID())
	if err := errors.Join(b.Claim(Owner{ID: k[1].ID()}), b.Save()); err != nil {
		f.Fatal(err)
	}
	if _, err := b.AddGrant(grant(f, "set fan 3/h", k[1], k[2]).Bytes()); err != nil {
		f.Fatal(err)
	}
	if _, err := b.Take(who(k[2]), setFan(), false); err != nil {
		f.Fatal(err)
	}
	f.Add(s.book, s.meter)
	f.Fuzz(func(t *testing.T, book, meter []byte) {
		nothing := func([]byte) error { return nil }
		b, err := NewStore(Options{Access: book, Counts: meter, SaveAccess: nothing, SaveCounts: nothing, SystemClock: func() (time.Time, bool) { return time.Time{}, false }})
		if err != nil {
			return
		}
		for name := range b.credentials {
			b.Take(agents.Principal{ID: name}, setFan(), false)
		}
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
		b.Grants()
	})
}

const aDay = 24 * time.Hour

// soon is a time by a book's own clock.
func soon(b *Store, in time.Duration) time.Time {
	now, _ := b.Now()
	return now.Add(in)
}
