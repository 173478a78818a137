package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node/access"
	"agentsite/node/identity"
)

var interleavings = flag.Int("interleavings", 10_000, "orders of two callers' steps over pairs of grants")

// stepper lets one of several callers go on at a time, from one pause to the next.
type stepper struct{ paused chan chan struct{} }

func (s stepper) pause() {
	next := make(chan struct{})
	s.paused <- next
	<-next
}

// stepped is a store of permissions, a journal and the outputs of a site, each step of
// which waits for its turn.
type stepped struct {
	stepper
	Outputs
	*access.Store
	noJournal
	last agents.Limits // of what was charged last
	made []made
	yes  map[float64]int // an owner's, by the value
}

// made is a call that was made.
type made struct {
	at     time.Time // when it was charged
	value  float64
	length time.Duration
	limits agents.Limits
}

func (s *stepped) Peer(string) (agents.Principal, error)   { panic("nobody comes by a carrier") }
func (s *stepped) Bearer(string) (agents.Principal, error) { panic("nobody comes by a carrier") }

func (s *stepped) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	s.pause()
	return s.Store.May(p, ask)
}

func (s *stepped) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	s.pause()
	var err error
	s.last, err = s.Store.Take(p, ask, confirmed)
	return s.last, err
}

func (s *stepped) CanSee(p agents.Principal, ask agents.Ask) bool { return s.Store.CanSee(p, ask) }

func (s *stepped) Begin(Asked) (func(Outcome), *Outcome, error) {
	return func(Outcome) {}, nil, nil
}

func (s *stepped) Policy(output string) (guard.Policy, error) {
	return guard.Policy{Output: output, Safe: device.Number(-1), Range: device.Range{Min: -1, Max: 100}}, nil
}

func (s *stepped) Status() []guard.Status { return nil }

func (s *stepped) StatusOf(string) (of guard.Status, ok bool) { return of, false }

func (s *stepped) Try(context.Context, string, string, device.Value, time.Duration) error {
	s.pause()
	return nil
}

func (s *stepped) Move(_ context.Context, _, _ string, v device.Value, length time.Duration) (guard.Status, error) {
	s.made = append(s.made, made{time.Now(), v.Number(), length, s.last})
	return guard.Status{}, nil
}

// conditions are those of one grant, in words and as the model has them.
type conditions struct {
	words     string
	low, high float64
	longest   time.Duration
	rate      int // an hour
	confirm   bool
	until     time.Duration
}

func drawConditions(rng *rand.Rand) conditions {
	c := conditions{words: "set *", low: 0, high: 100, longest: time.Hour, rate: 1 << 20, until: 10000 * time.Hour}
	if rng.IntN(3) == 0 {
		c.low, c.high = 0, float64(50*rng.IntN(2))
		c.words += fmt.Sprintf(" %v..%v", c.low, c.high)
	}
	if rng.IntN(3) == 0 {
		c.longest = time.Minute
		c.words += " max 1m"
	}
	if rng.IntN(2) == 0 {
		c.rate = 1 + rng.IntN(2)
		c.words += fmt.Sprintf(" %d/h", c.rate)
	}
	if c.confirm = rng.IntN(2) == 0; c.confirm {
		c.words += " confirm"
	}
	if rng.IntN(4) == 0 {
		c.until = time.Duration(10+rng.IntN(50)) * time.Minute
	}
	return c
}

// allows reports whether the conditions allow one call at a time, where confirmed says
// whether an owner said yes to it.
func (c conditions) allows(m made, began time.Time, confirmed bool) bool {
	switch {
	case m.value < c.low || m.value > c.high, m.length > c.longest:
	case m.at.Sub(began) >= c.until, c.confirm && !confirmed:
	case m.limits.Range != nil && (m.limits.Range.Min < c.low || m.limits.Range.Max > c.high):
	case m.limits.Lease == 0 && c.longest != time.Hour, m.limits.Lease > c.longest:
	default:
		return true
	}
	return false
}

// explained reports whether each call can have been made by one grant, all of whose
// conditions held for it and which it was charged to.
func explained(calls []made, grants []conditions, charged [][]time.Time, began time.Time, yes map[float64]int) bool {
	if len(calls) == 0 {
		return true
	}
	m := calls[0]
	for i, c := range grants {
		recent := 0
		for _, at := range charged[i] {
			if m.at.Sub(at) < time.Hour {
				recent++
			}
		}
		if recent >= c.rate || !c.allows(m, began, yes[m.value] > 0) {
			continue
		}
		if c.confirm {
			yes[m.value]--
		}
		charged[i] = append(charged[i], m.at)
		if explained(calls[1:], grants, charged, began, yes) {
			return true
		}
		charged[i] = charged[i][:len(charged[i])-1]
		if c.confirm {
			yes[m.value]++
		}
	}
	return false
}

// TestOneGrantDecides: for any order of the steps of two callers, each call is allowed by one grant
// with all of its conditions, and charged to it. The seed is printed, to reproduce a failure.
func TestOneGrantDecides(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 6))
	owner, site, caller := identity.New(), identity.New().ID(), identity.New().ID()
	who := agents.Principal{ID: caller.String()}
	count, calls, confirmed := 0, 0, 0
	for count < *interleavings {
		grants := []conditions{drawConditions(rng), drawConditions(rng)}
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			book, err := access.NewStore(access.Options{
				Site: site, SystemClock: func() (time.Time, bool) { return time.Now(), true },
				SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
			})
			if err != nil || book.Claim(access.Owner{ID: owner.ID()}) != nil {
				t.Fatal(err)
			}
			for _, c := range grants {
				may, err := access.ParsePermissions(c.words)
				if err != nil {
					t.Fatal(err)
				}
				g, err := access.Issue(owner, access.Block{Audience: caller, Permissions: may, Until: began.Add(c.until).Unix()})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := book.AddGrant(g.Bytes()); err != nil {
					t.Fatal(err)
				}
			}
			// All orders of this pair go over one store, hours apart, while neither grant has ended.
			for began := began; ; began = time.Now() {
				s := &stepped{stepper: stepper{make(chan chan struct{})}, Store: book, yes: map[float64]int{}}
				n := New(Parts{Hub: newHub(), Journal: s, Access: s})
				err := n.Replace(Site{Outputs: s, Devices: []Device{{Name: "fan", Description: device.Description{Points: []device.Point{{Name: "speed", Kind: device.KindLevel}}}}}})
				if err != nil {
					t.Fatal(err)
				}
				s.interleave(t, n, who, rng)
				for _, n := range s.yes {
					confirmed += n
				}
				if !explained(s.made, grants, make([][]time.Time, len(grants)), began, s.yes) {
					t.Fatalf("seed %d: under '%s' and '%s', these calls were made: %+v, with these confirmations left: %v", seed, grants[0].words, grants[1].words, s.made, s.yes)
				}
				count, calls = count+1, calls+len(s.made)
				if time.Sleep(2 * time.Hour); grants[0].until < 1000*time.Hour || grants[1].until < 1000*time.Hour || count%20 == 0 {
					return
				}
			}
		})
	}
	t.Logf("%d interleavings, %d calls made, %d confirmed", count, calls, confirmed)
	if calls < count || confirmed < count/10 {
		t.Error("too few were made for this to mean anything")
	}
}

// waits reports whether a call waits for an owner.
func waits(err error) bool {
	var needs *agents.ApprovalNeeded
	return errors.As(err, &needs)
}

// interleave has two callers make two calls each, while an owner confirms what waits for
// it, and time passes.
func (s *stepped) interleave(t *testing.T, n *Node, who agents.Principal, rng *rand.Rand) {
	const callers = 2
	done := make(chan struct{}, callers)
	for range callers {
		value, length := float64(50*rng.IntN(3)), []time.Duration{0, time.Minute, 10 * time.Minute}[rng.IntN(3)]
		r := agents.MoveRequest{Output: "fan/speed", Value: device.Number(value)}
		if length > 0 {
			r.For = new(length.Seconds())
		}
		go func() {
			defer func() { done <- struct{}{} }()
			for range 3 { // after an owner's yes it calls again
				if _, err := n.Move(context.Background(), who, r); err != nil && device.AsFault(err).Kind != device.Busy && !waits(err) {
					return
				}
			}
		}()
	}
	var paused []chan struct{}
	for left := callers; left > 0; {
		synctest.Wait()
		for more := true; more; {
			select {
			case next := <-s.paused:
				paused = append(paused, next)
			case <-done:
				left--
			default:
				more = false
			}
		}
		if len(paused) == 0 {
			continue
		}
		switch rng.IntN(12) {
		case 0:
			time.Sleep(time.Duration(rng.IntN(20)) * time.Minute)
		case 1, 2, 3:
			all, err := n.Requests(agents.Principal{ID: "ann", Owner: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				var in struct {
					Output string   `json:"output"`
					Value  *float64 `json:"value"`
					For    *float64 `json:"for_seconds"`
				}
				if jsonArgs(r.Args).Decode(&in) == nil && n.Approve(agents.Principal{ID: "ann", Owner: true}, r.Handle, true) == nil {
					s.yes[*in.Value]++
				}
			}
		}
		i := rng.IntN(len(paused))
		next := paused[i]
		paused = slices.Delete(paused, i, i+1)
		close(next)
	}
}
