package access

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

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
		repeat(1, child, "used up: again in 1h")
		time.Sleep(10 * time.Minute)
		repeat(7, root, "")
		repeat(1, root, "used up: again in 50m")
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
		// A call that cannot be counted is not made.
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
