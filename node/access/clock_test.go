package access

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
)

const oneDay = 24 * time.Hour

func day(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }

// reading is an input of a Clock and the expected output; zero fields are no input.
type reading struct {
	ran     time.Duration
	network time.Time
	offered time.Time
	told    time.Time
	set     time.Time
	want    time.Time
	sure    bool
}

func TestClock(t *testing.T) {
	for name, tt := range map[string]struct {
		saved time.Time
		known bool
		all   []reading
	}{
		"an owner's word, never back": {day(2), true, []reading{
			{ran: 0, want: day(3)},
			{ran: oneDay, want: day(4)},
			{ran: oneDay, told: day(60), want: day(60), sure: true},
			{ran: oneDay, told: day(59), want: day(60), sure: true},
			{ran: 2 * oneDay, want: day(61), sure: true},
		}},
		"the first network, and then only within bounds": {time.Time{}, false, []reading{
			{ran: 0, network: day(100), want: day(100), sure: true},
			{ran: 0, network: day(107), want: day(107), sure: true},
			{ran: 0, network: day(108), want: day(107)},
			{ran: oneDay, network: day(108), want: day(108), sure: true},
			{ran: oneDay, want: day(108), sure: true}, // the network is gone
		}},
		"steps of the network do not add up": {day(10), true, []reading{
			{ran: 0, network: day(15), want: day(15), sure: true},
			{ran: 0, network: day(19), want: day(15)},
			{ran: oneDay, network: day(18), want: day(18), sure: true},
			{ran: oneDay, network: day(19), want: day(18)},
		}},
		"off for long, until an owner agrees": {day(10), true, []reading{
			{ran: 0, network: day(300), want: day(10)},
			{ran: 0, network: day(300), told: day(300), want: day(300), sure: true},
			{ran: 0, network: day(306), want: day(306), sure: true},
		}},
		"an owner overrules the network": {day(10), true, []reading{
			{ran: 0, network: day(300), want: day(10)},
			{ran: 0, told: day(11), want: day(11), sure: true},
			{ran: 0, network: day(300), told: day(11), want: day(11), sure: true},
			{ran: oneDay, network: day(301), want: day(12), sure: true},
			{ran: oneDay, network: day(12), want: day(12), sure: true},
			{ran: oneDay, network: day(301), want: day(12)}, // it lies anew
		}},
		"the network goes back": {day(10), true, []reading{
			{ran: 0, network: day(12), want: day(12), sure: true},
			{ran: 0, network: day(12).Add(-time.Hour), want: day(12), sure: true},
			{ran: 0, network: day(1), want: day(12)},
			{ran: oneDay, network: day(13), want: day(13), sure: true},
		}},
		"only at the site itself it is set back": {day(300), true, []reading{
			{ran: 0, told: day(10), want: day(300), sure: true},
			{ran: oneDay, set: day(10), want: day(10), sure: true},
			{ran: 2 * oneDay, network: day(11), want: day(11), sure: true},
		}},
		"an owner's machine, within bounds": {day(10), true, []reading{
			{ran: 0, offered: day(300), want: day(10)},
			{ran: 0, offered: day(17), want: day(17), sure: true},
			{ran: 0, offered: day(18), want: day(17), sure: true},
			{ran: 0, offered: day(15), want: day(17), sure: true},
			{ran: oneDay, offered: day(18), want: day(18), sure: true},
			{ran: oneDay, offered: day(19), want: day(18), sure: true}, // steps do not add up
			{ran: oneDay, told: day(300), want: day(300), sure: true},
		}},
		"an owner's machine is the first, and is behind": {time.Time{}, false, []reading{
			{ran: 0, offered: day(300), want: day(300), sure: true},
			{ran: 0, offered: day(400), want: day(300), sure: true},
		}},
		"an owner's machine is behind": {day(10), true, []reading{
			{ran: 0, offered: day(8), want: day(10)},
			{ran: 0, offered: day(9), want: day(10), sure: true},
		}},
		"before it was built": {time.Time{}, false, []reading{
			{ran: 0, network: day(1), want: day(3)},
		}},
	} {
		c := newClock(day(3), tt.saved, tt.known)
		for i, r := range tt.all {
			got, sure := c.read(r.ran, r.network, !r.network.IsZero())
			if !r.offered.IsZero() {
				c.offer(r.ran, r.offered)
			}
			if !r.told.IsZero() {
				c.advance(r.ran, r.told)
			}
			if !r.set.IsZero() {
				c.set(r.ran, r.set)
			}
			if !r.offered.IsZero() || !r.told.IsZero() || !r.set.IsZero() {
				got, sure = c.read(r.ran, r.network, !r.network.IsZero())
			}
			if !got.Equal(r.want) || sure != r.sure {
				t.Errorf("%s, %d: %v %v, want %v %v", name, i, got, sure, r.want, r.sure)
			}
		}
	}
}

// TestGuess: while the time is not known it goes on from the newest record, or by a system's clock
// that nothing contradicts. No permission is decided by it.
func TestGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		s := shelf{adrift: true}
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		now := func(ahead time.Duration, sure bool) {
			t.Helper()
			got, known := b.Now()
			if off := time.Until(got); off != ahead || known != sure {
				t.Errorf("%v ahead, known %v; want %v, %v", off, known, ahead, sure)
			}
		}
		now(0, false)
		s.system = 3 * oneDay // by a battery
		now(3*oneDay, false)
		s.system = -365 * oneDay
		b.Recorded(time.Now().Add(-time.Hour))
		now(-time.Hour, false)
		b.Recorded(time.Now().Add(100 * oneDay))
		time.Sleep(time.Hour)
		now(100*oneDay, false)
		g, err := Issue(k[1], Block{Audience: k[2].ID(), Until: time.Now().Add(oneDay).Unix(), Permissions: words(t, "set fan, read fan")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.AddGrant(g.Bytes())
		wants(t, err, "")
		_, err = b.May(who(k[2]), readFan())
		wants(t, err, "")
		wants(t, b.AdvanceClock(time.Now()), "")
		now(0, true)
		s.system, s.adrift = 30*oneDay, false // the network lies
		now(0, false)
		b = s.open(t, k[0].ID())
		now(0, false)
		s.adrift = true // and is gone
		now(0, false)
	})
}

// TestHostileTime: a time from the far future ends nothing permanently, also over starts. A time
// from the past revives nothing that ended while the site ran, wherever its power is cut.
func TestHostileTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keys(3)
		var s shelf
		b := s.open(t, k[0].ID())
		wants(t, b.Claim(Owner{ID: k[1].ID()}), "")
		deposit := func(length time.Duration) {
			t.Helper()
			g, err := Issue(k[1], Block{Audience: k[2].ID(), Until: time.Now().Add(length).Unix(), Permissions: words(t, "set fan, read fan")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.AddGrant(g.Bytes())
			wants(t, err, "")
		}
		deposit(30 * oneDay)
		may := func(ask agents.Ask, want string) {
			t.Helper()
			_, err := b.May(who(k[2]), ask)
			wants(t, err, want)
		}
		may(setFan(), "")
		for range 3 {
			s.system = 20 * 365 * oneDay
			may(readFan(), "")
			may(setFan(), "its machine's clock")
			if off := b.ClockSkew(); off != s.system {
				t.Error(off)
			}
			wants(t, b.Save(), "")
			b = s.open(t, k[0].ID())
		}
		wants(t, b.SetClock(built.Add(-oneDay), true), "this program's build")
		wants(t, b.AdvanceClock(time.Now()), "")
		may(setFan(), "")
		s.system = 0
		b = s.open(t, k[0].ID())
		may(setFan(), "")
		s.system = 6 * oneDay // as far as it is believed
		may(setFan(), "")
		s.system = 0
		wants(t, b.AdvanceClock(time.Now()), "")
		if now, _ := b.Now(); !now.Equal(time.Now().Add(6 * oneDay)) {
			t.Error("an owner's remote call sets it back:", now)
		}
		wants(t, b.SetClock(time.Now(), true), "")
		if now, sure := b.Now(); !now.Equal(time.Now()) || !sure {
			t.Error(now, sure)
		}

		wants(t, b.Revoke(Revocation{Key: k[2].ID()}), "")
		deposit(10 * time.Minute)
		saved := time.Now()
		var ended atomic.Int32
		b.Options.OnEnd = func() { ended.Add(1) }
		go b.Run(t.Context())
		time.Sleep(10*time.Minute - time.Second)
		may(setFan(), "")
		if ended.Load() != 0 {
			t.Error("it ended early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("nothing was told of an end:", ended.Load())
		}
		time.Sleep(10 * time.Minute)
		after := shelf{book: s.book, meter: s.meter, system: -time.Since(saved)} // its power was cut
		b = after.open(t, k[0].ID())
		may(setFan(), "ended")
		may(readFan(), "ended")
	})
}
