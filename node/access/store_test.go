package access

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
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
		wants(t, mayBring(who(bob), g), "who is no owner of this site")
		wants(t, b.Claim(Owner{ID: ann.ID(), Name: "ann"}), "")
		wants(t, mayBring(who(bob), g), "")
		wants(t, mayBring(who(bob)), lack)
		wants(t, mayBring(who(eve), g), lack) // another's
		wants(t, mayBring(agents.Principal{}, g), lack)
		wants(t, mayBring(who(ann)), lack) // the key alone is nobody's authority
		wants(t, mayBring(agents.Principal{ID: "local", Owner: true}), "")

		if _, err := b.AddGrant(g.Bytes()); err != nil {
			t.Fatal(err)
		}
		_, err := b.AddGrant(grant(t, "set fan", eve, bob).Bytes())
		wants(t, err, "no owner")
		wants(t, mayBring(who(bob)), "")

		// Two grants add up, and the denial is the one that helps most.
		other, more := grant(t, "set fan 1/h", ann, eve), grant(t, "set lamp", ann, eve)
		for _, want := range []string{"", "again in"} {
			_, err = take(b, who(eve), setFan(), other, more)
			wants(t, err, want)
		}
		_, err = take(b, who(eve), agents.Ask{Tool: "switch_output", Points: []string{"lamp/on"}}, other, more)
		wants(t, err, "")
		_, err = take(b, who(eve), agents.Ask{Tool: "switch_output", Points: []string{"fan/on", "lamp/on"}}, other, more)
		wants(t, err, "you lack the permission") // but not within one call

		// Passed on, with a narrower one that says more than it may.
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
		if !b.Sees(agents.Principal{ID: "local", Owner: true}, level) {
			t.Error("the owner does not see all")
		}

		// What was kept is there after a start.
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
		wants(t, err, "does not know the time yet")
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

// TestRate: ten an hour, over starts, for whoever it was passed on to.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(4)
		s := shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		root := grant(t, "set fan 10/h", k[1], k[2])
		child, err := root.Delegate(k[2], Block{Audience: k[3].ID(), Permissions: words(t, "set fan 3/h")})
		if err != nil {
			t.Fatal(err)
		}
		repeat := func(n int, g *Grant, want string) {
			t.Helper()
			for range n {
				_, err := take(b, agents.Principal{ID: g.Audience().String()}, setFan(), g)
				wants(t, err, want)
			}
		}
		for range 50 { // what is only asked is not counted, and neither is a return
			if _, err := may(b, who(k[2]), setFan(), root); err != nil {
				t.Fatal(err)
			}
			if _, err := take(b, who(k[2]), agents.Ask{Tool: "release_output", Points: []string{"fan/on"}, Effect: agents.Returns}, root); err != nil {
				t.Fatal(err)
			}
		}
		repeat(3, child, "")
		repeat(1, child, "your rate is used up: again in 1h")
		time.Sleep(10 * time.Minute)
		repeat(7, root, "")
		repeat(1, root, "your rate is used up: again in 50m")
		if _, err := may(b, who(k[2]), setFan(), root); device.AsFault(err).Kind != device.Busy {
			t.Error(err)
		}
		// Off for a day, with what was counted ten minutes before the end.
		b = s.open(t, k[0].ID())
		time.Sleep(24 * time.Hour)
		b = s.open(t, k[0].ID())
		repeat(1, root, "again in 50m")
		repeat(1, child, "again in 50m")
		time.Sleep(50 * time.Minute)
		repeat(3, root, "")
		repeat(1, child, "again in 10m") // its own three came back, the root's did not
		if !sees(b, who(k[2]), setFan(), root) {
			t.Error("a rate that is used up hides what it is for")
		}
		// What could not be counted is not done.
		time.Sleep(time.Hour)
		s.full = errors.New("disk full")
		if _, err := take(b, who(k[2]), setFan(), root); device.AsFault(err).Kind != device.Unavailable {
			t.Error(err)
		}
		_, err = take(b, who(k[2]), agents.Ask{Tool: "switch_output", Points: []string{"lamp/on"}}, root)
		if device.AsFault(err).Kind != device.Denied {
			t.Error(err)
		}
		// A child without end makes no memory without end.
		s.full = nil
		for n := range maxChildren + 3 {
			g, err := root.Delegate(k[2], Block{Audience: k[3].ID(), Permissions: words(t, "set fan 200/h")})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Minute)
			_, err = take(b, who(k[3]), setFan(), g)
			if n < 9 {
				wants(t, err, "")
			}
		}
		if n := len(b.counter.uses); n > maxChildren+1 {
			t.Errorf("%d uses are counted", n)
		}
	})
}

func TestManyChildren(t *testing.T) {
	m := rateCounter{uses: map[use]*usage{}}
	child := func(n int) []charge { return []charge{{use{Hash{1}, Hash{2, byte(n)}, 0}, Rate{Calls: 1, Per: 60}}} }
	for n := range maxChildren {
		if err := m.check(0, child(n)); err != nil {
			t.Fatal(err)
		}
		m.take(0, child(n))
	}
	wants(t, m.check(59*time.Second, child(100)), "16 narrower rates")
	wants(t, m.check(time.Minute, child(100)), "") // those are over
}

// TestSchedules: never an eleventh within any hour of real time, over starts with and
// without warning, copies that are restored, steps of the clock by ten years, and children.
func TestSchedules(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	k := keys(4)
	root := grant(t, "set fan 10/h", k[1], k[2])
	child, err := root.Delegate(k[2], Block{Audience: k[3].ID(), Permissions: words(t, "set fan 5/h")})
	if err != nil {
		t.Fatal(err)
	}
	taken, starts := 0, 0
	for n := range *schedule {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			s := shelf{}
			b := s.open(t, k[0].ID())
			if err := b.Claim(Owner{ID: k[1].ID()}); err != nil {
				t.Fatal(err)
			}
			var done []time.Time
			var early []byte
			for range 200 {
				switch rng.IntN(12) {
				case 0: // a loss of power, and some time without
					time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Hour))))
					if rng.IntN(8) == 0 { // and of the card
						restored, err := RestoreCounts(early)
						if err != nil {
							t.Fatal(err)
						}
						s.meter = restored
					}
					b = s.open(t, k[0].ID())
					starts++
				case 1: // an end in order
					if err := b.Save(); err != nil {
						t.Fatal(err)
					}
					b = s.open(t, k[0].ID())
					if rng.IntN(4) == 0 {
						early = s.meter // a copy
					}
				case 2:
					s.system = time.Duration(rng.IntN(3)-1) * 10 * 365 * 24 * time.Hour
				case 3:
					s.adrift = !s.adrift
				case 4, 5, 6:
					time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Minute))))
				default:
					g := root
					if rng.IntN(2) == 0 {
						g = child
					}
					if _, err := take(b, agents.Principal{ID: g.Audience().String()}, setFan(), g); err == nil {
						taken++
						done = append(done, time.Now())
					}
				}
				if len(done) > 10 && done[len(done)-1].Sub(done[len(done)-11]) < time.Hour {
					t.Fatalf("seed %d, schedule %d: an eleventh at %v", seed, n, done)
				}
			}
		})
	}
	t.Logf("%d schedules, %d calls, %d starts", *schedule, taken, starts)
	if taken < *schedule*10 {
		t.Error("too few calls for this to mean anything")
	}
}

func TestOwners(t *testing.T) {
	k := keys(12)
	s := shelf{}
	b := s.open(t, k[0].ID())
	secret, err := b.ClaimSecret()
	wants(t, err, "")
	b = s.open(t, k[0].ID())
	s.full = errors.New("disk full")
	if again, err := b.ClaimSecret(); err != nil || again != secret {
		t.Error("the secret is another after a start, or takes a disk", err)
	}
	if b.Claimed() {
		t.Error("it is claimed")
	}
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "nothing is changed: disk full")
	s.full = nil
	if b.Claimed() {
		t.Error("it is claimed, and a start would forget it")
	}
	wants(t, b.Claim(Owner{}), "anybody can sign")
	wants(t, b.Claim(Owner{ID: k[1].ID(), Name: "ann"}), "")
	wants(t, b.Claim(Owner{ID: k[2].ID()}), "has an owner already")
	_, err = b.ClaimSecret()
	wants(t, err, "has an owner already")
	if bytes.Contains(s.book, secret[:]) {
		t.Error("the secret is still kept")
	}
	wants(t, b.RemoveOwner(k[1].ID()), "the last owner")
	wants(t, b.RemoveOwner(k[2].ID()), "is no owner here")
	for i := range maxOwners - 1 {
		wants(t, b.AddOwner(Owner{ID: k[2+i].ID()}), "")
	}
	wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "") // again
	wants(t, b.AddOwner(Owner{ID: k[11].ID()}), "8 owners")
	g := grant(t, "set fan", k[2], k[11])
	_, err = may(b, who(k[11]), setFan(), g)
	wants(t, err, "")
	wants(t, b.RemoveOwner(k[2].ID()), "")
	_, err = may(b, who(k[11]), setFan(), g)
	wants(t, err, "no owner")
}

// TestEndlessToken: a token may count for ever, over starts and beside others that end.
func TestEndlessToken(t *testing.T) {
	k := keys(2)
	s := shelf{}
	b := s.open(t, k[0].ID())
	wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
	g := grant(t, "read fan", k[1], k[0])
	token, err := b.AddToken("kept", g.Bytes(), time.Time{})
	wants(t, err, "")
	_, err = b.AddToken("ends", grant(t, "read fan", k[1], k[0]).Bytes(), soon(b, time.Hour))
	wants(t, err, "")
	b = s.open(t, k[0].ID())
	p, err := b.Bearer(token)
	wants(t, err, "")
	_, err = b.May(p, readFan())
	wants(t, err, "")
	wants(t, b.Revoke(Revocation{Token: "kept"}), "")
	_, err = b.Bearer(token)
	wants(t, err, "no token of this site")
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

// TestRecovery: who has the code is the only owner, and who guesses keeps nobody waiting.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(5)
		s := shelf{}
		b := s.open(t, k[0].ID())
		_, err := b.NewRecovery()
		wants(t, err, "no owner yet")
		wants(t, b.Recover(t.Context(), "", Owner{ID: k[4].ID()}), "not the recovery code")
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		wants(t, b.AddOwner(Owner{ID: k[2].ID()}), "")
		void, err := b.NewRecovery()
		wants(t, err, "")
		code, err := b.NewRecovery()
		wants(t, err, "")
		if len(code) != 39 || bytes.Contains(s.book, []byte(code)) {
			t.Error(code)
		}
		g := grant(t, "set fan", k[1], k[3])
		b = s.open(t, k[0].ID())
		ended := 0
		b.Options.OnEnd = func() { ended++ }

		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		begin := time.Now()
		for _, wrong := range []string{"", void, strings.Repeat("0", 32), code + "00", code + "x", code[:37], "-"} {
			all.Go(func() {
				if err := b.Recover(ctx, wrong, Owner{ID: k[4].ID()}); err != errCode {
					t.Error(wrong, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("seven wrong codes took %v", took)
		}
		for range 1000 {
			all.Go(func() { b.Recover(ctx, void, Owner{ID: k[4].ID()}) })
		}
		synctest.Wait()
		if b.guesses.waiting != maxGuesses || ended != 0 {
			t.Error(b.guesses.waiting, "wait;", ended)
		}
		begin = time.Now()
		_, err = may(b, who(k[3]), setFan(), g)
		wants(t, err, "")
		s.full = errors.New("disk full")
		wants(t, b.Recover(ctx, code, Owner{ID: k[4].ID()}), "nothing is changed: disk full")
		s.full = nil
		wants(t, b.Recover(ctx, strings.ToUpper(code), Owner{ID: k[4].ID()}), "")
		if o := b.Owners(); len(o) != 1 || o[0].ID != k[4].ID() || time.Since(begin) != 0 || ended != 1 {
			t.Error(o, time.Since(begin), ended)
		}
		_, err = may(b, who(k[3]), setFan(), g)
		wants(t, err, "no owner")
		cancel()
		all.Wait()
		wants(t, b.Recover(ctx, code, Owner{ID: k[2].ID()}), "or it was used")
	})
}

// TestRestored: what a copy does not know counts as used up, for grants too that the site
// never saw, until the site has run for long enough.
func TestRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		for _, before := range []time.Duration{0, 90 * time.Minute} {
			s := shelf{}
			b := s.open(t, k[0].ID())
			wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
			if before > 0 {
				time.Sleep(before)
				wants(t, b.Save(), "")
			}
			var err error
			s.meter, err = RestoreCounts(s.meter)
			wants(t, err, "")
			b = s.open(t, k[0].ID())
			g := grant(t, "set fan 2/h, set pump", k[1], k[2])
			take := func(point string) error {
				_, err := take(b, who(k[2]), agents.Ask{Tool: "switch_output", Points: []string{point}}, g)
				return err
			}
			wants(t, take("pump/on"), "") // without a rate
			wants(t, take("fan/on"), "your rate is used up: again in ")
			time.Sleep(time.Hour - time.Second)
			wants(t, b.Save(), "")
			b = s.open(t, k[0].ID())
			time.Sleep(time.Second)
			wants(t, take("fan/on"), "your rate is used up: again in 1s")
			time.Sleep(time.Second)
			wants(t, take("fan/on"), "")
			wants(t, take("fan/on"), "")
			wants(t, take("fan/on"), "your rate is used up: again in ")
		}
		_, err := RestoreCounts([]byte("hello"))
		wants(t, err, "cannot be read")
		late := rateCounter{before: time.Hour, since: time.Hour + 2, uses: map[use]*usage{}}
		text, err := late.encode(0, built, false)
		wants(t, err, "")
		_, err = RestoreCounts(text)
		wants(t, err, "damaged")
	})
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		s := shelf{}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		fan := grant(t, "set fan", k[1], k[0]).Bytes()
		token, err := b.AddToken("desk", fan, soon(b, aDay))
		wants(t, err, "")
		if len(token) != 64 || bytes.Contains(s.book, []byte(token)) {
			t.Error("it is kept, or no token: ", token)
		}
		_, err = b.AddToken("desk", fan, soon(b, aDay))
		wants(t, err, "a token desk already")
		_, err = b.AddToken("Desk", fan, soon(b, aDay))
		wants(t, err, "is not a name")
		_, err = b.AddToken("eve", grant(t, "set fan", k[2], k[0]).Bytes(), soon(b, aDay))
		wants(t, err, "no owner")
		_, err = b.AddToken("bob", grant(t, "set fan", k[1], k[2]).Bytes(), soon(b, aDay))
		wants(t, err, "for the site itself")

		b = s.open(t, k[0].ID())
		p, err := b.Bearer(token)
		wants(t, err, "")
		if p != (agents.Principal{ID: "token:desk"}) {
			t.Error(p)
		}
		may := func(p agents.Principal) error {
			_, err := b.May(p, setFan())
			return err
		}
		wants(t, may(p), "")
		for _, wrong := range []string{"", "desk", token[:62], token + "00", strings.Repeat("0", 64), strings.ToUpper(token) + "x"} {
			_, err := b.Bearer(wrong)
			wants(t, err, "no token of this site")
		}
		b.URL = "https://boiler.local:8473"
		_, err = b.Bearer(token)
		b.URL = "u"
		wants(t, err, "for another address")
		time.Sleep(aDay)
		_, err = b.Bearer(token)
		wants(t, err, "has ended")
		wants(t, may(p), "your permission ended")

		token, err = b.AddToken("desk", fan, soon(b, time.Hour)) // in the place of what has ended
		wants(t, err, "")
		s.full = errors.New("disk full") // revoked all the same
		wants(t, b.Revoke(Revocation{Token: "desk"}), "it is revoked, but")
		wants(t, may(p), "revoked")
		s.full = nil
		wants(t, b.Revoke(Revocation{Token: "desk"}), "")
		_, err = b.Bearer(token)
		wants(t, err, "no token of this site")
		if len(b.Tokens()) != 0 {
			t.Error(b.Tokens())
		}
	})
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
