package access

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
)

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
