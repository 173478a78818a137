package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

const gap = time.Second

// interlockedSwitch has no other limit, so that nothing but its group stands in its way.
func interlockedSwitch(name, group string) Policy {
	return Policy{Output: name, Kind: device.KindSwitch, Safe: off, MaxOn: Unlimited, Interlock: Interlock{group, gap}}
}

func TestInterlock(t *testing.T) {
	const up, down = "blind/up", "blind/down"
	m := NewMachine([]Policy{interlockedSwitch(up, "blind"), interlockedSwitch(down, "blind"), interlockedSwitch("tank/pump", "other")}, false)
	follow := func(now Time, i int, err error) {
		v, _ := m.Pending(i)
		m.Driving(i)
		m.Applied(now, i, v, err)
	}
	follow(0, 0, nil)
	wantFault(t, m.Move(time.Hour, "ann", up, on, 0), device.Unsafe, "interlocked with "+down, "not known")
	follow(time.Hour, 1, nil)
	wantFault(t, m.Move(time.Hour+gap-1, "ann", up, on, 0), device.Unsafe, down, "1s") // the gap starts in full
	now := time.Hour + gap
	mustMove(t, m, now, "ann", up, on, time.Minute)
	wantFault(t, m.Move(now, "ann", down, on, 0), device.Unsafe, up, "holds for another 1m")
	follow(now, 2, nil)
	mustMove(t, m, now, "bob", "tank/pump", on, 0) // another group does not care

	// A write to safe that fails keeps the partner where it is, until one succeeds.
	follow(now, 0, nil)
	_ = m.Release(up)
	follow(now, 0, errors.New("the relay is welded"))
	if v, pending := m.Pending(0); v != off || !pending {
		t.Errorf("%v %v: it is not driven to safe any more", v, pending)
	}
	if s := m.Status(now, 0); s.Safe || s.Fault != "the relay is welded" {
		t.Errorf("%+v", s)
	}
	now += time.Hour
	wantFault(t, m.Move(now, "ann", down, on, 0), device.Unsafe, up, "not known")
	follow(now, 0, nil)
	wantFault(t, m.Move(now, "ann", down, on, 0), device.Unsafe, up, "safe for 1s")
	mustMove(t, m, now+gap, "ann", down, on, 0)
}

// TestInterlockPartner: if an output is found not to be safe, all others of the group go to safe.
func TestInterlockPartner(t *testing.T) {
	m := NewMachine([]Policy{interlockedSwitch("blind/up", "blind"), interlockedSwitch("blind/stop", "blind")}, false)
	settle(m, 0)
	mustMove(t, m, gap, "ann", "blind/up", on, 0)
	settle(m, gap)
	m.Applied(gap, 1, off, errors.New("reads on"))
	want(t, m, 0, off)
	if s := m.Status(gap, 0); !strings.Contains(s.Why, "interlock") {
		t.Errorf("%+v", s)
	}
	wantFault(t, m.Move(gap, "ann", "blind/up", on, 0), device.Unsafe, "blind/stop") // though it has not come back itself
	settle(m, gap)
	mustMove(t, m, 2*gap, "ann", "blind/up", on, 0)
}

// yard is eight outputs in two groups, with the hardware as a bystander sees it.
type yard struct {
	m       *Machine
	now     Time
	have    [8]device.Value // zero where nobody knows
	writing [8]device.Value // zero for nothing
	safe    [8]Time         // since when it is known to be
}

func (y yard) clone() yard {
	m := *y.m
	m.outputs = slices.Clone(m.outputs) // their windows are nil
	y.m = &m
	return y
}

// group is the other members of i's group.
func group(i int) []int {
	var all []int
	for k := i / 4 * 4; k < i/4*4+4; k++ {
		if k != i {
			all = append(all, k)
		}
	}
	return all
}

// mayLeave: all others are safe, and have been for the gap.
func (y *yard) mayLeave(i int) bool {
	for _, k := range group(i) {
		if y.have[k] != off || !y.writing[k].IsZero() || y.now-y.safe[k] < gap {
			return false
		}
	}
	return true
}

// print is all that can make a difference later. Outputs of a group are alike, and the
// groups are.
func (y *yard) print() string {
	var groups [2][]string
	for i := range 8 {
		s := y.m.Status(y.now, i)
		v, _ := y.m.Pending(i)
		b := []byte{byte(y.have[i].Type()), byte(y.have[i].Number()), byte(y.writing[i].Type()), byte(y.writing[i].Number()), byte(v.Number()),
			byte(len(s.Fault)), byte(min(gap, y.now-y.safe[i]) * 2 / gap)}
		groups[i/4] = append(groups[i/4], string(b)+s.Holder)
	}
	var all []string
	for _, g := range groups {
		slices.Sort(g)
		all = append(all, strings.Join(g, ","))
	}
	slices.Sort(all)
	return strings.Join(all, ";")
}

// TestInterleavings explores all sequences of steps of two callers, eight outputs in two groups,
// and slow, failing hardware, until there are no new states. States that are equal up to names and
// old times are explored once. Without -thorough it ends early.
func TestInterleavings(t *testing.T) {
	var ps []Policy
	for i := range 8 {
		ps = append(ps, interlockedSwitch(fmt.Sprintf("group%d/output%d", i/4, i%4), []string{"left", "right"}[i/4]))
	}
	type step struct {
		name string
		do   func(y *yard, i int) bool // false where it changes nothing
	}
	move := func(who string) step {
		return step{who + " moves", func(y *yard, i int) bool {
			may := y.mayLeave(i)
			err := y.m.Move(y.now, who, ps[i].Output, on, Unlimited)
			wanted := false // another is, which is reason enough
			for _, k := range append(group(i), i) {
				v, _ := y.m.Pending(k)
				wanted = wanted || v == on
			}
			if err == nil && !may {
				t.Errorf("%s left beside others: %q", ps[i].Output, y.print())
			}
			if err != nil && may && !wanted && y.have[i] == off && y.writing[i].IsZero() {
				t.Errorf("refused without a reason: %v: %q", err, y.print())
			}
			return err == nil
		}}
	}
	land := func(err error) func(y *yard, i int) bool {
		return func(y *yard, i int) bool {
			v := y.writing[i]
			if v.IsZero() {
				return false
			}
			y.writing[i], y.have[i] = device.Value{}, v
			if err != nil {
				y.have[i] = device.Value{}
			} else if v == off {
				y.safe[i] = y.now
			}
			y.m.Applied(y.now, i, v, err)
			return true
		}
	}
	steps := []step{
		move("ann"), move("bob"),
		{"released", func(y *yard, i int) bool { return y.m.Release(ps[i].Output) == nil }},
		{"write begins", func(y *yard, i int) bool {
			v, pending := y.m.Pending(i)
			if !pending || !y.writing[i].IsZero() {
				return false
			}
			y.writing[i] = v
			y.m.Driving(i)
			return true
		}},
		{"write lands", land(nil)},
		{"write fails", land(errLoose)},
		{"time passes", func(y *yard, i int) bool { y.now += gap / 2; y.m.Tick(y.now); return i == 0 }},
	}
	first := yard{m: NewMachine(ps, false)}
	seen := map[string]bool{first.print(): true}
	queue, tried := []yard{first}, 0
	for len(queue) > 0 && (len(seen) < 5000 || *thorough) && !t.Failed() {
		from := queue[0]
		queue = queue[1:]
		for _, s := range steps {
			for i := range 8 {
				y := from.clone()
				tried++
				if !s.do(&y, i) {
					continue
				}
				for k := range 8 {
					v, _ := y.m.Pending(k)
					for _, other := range group(k) {
						if v == on && (y.have[other] != off || !y.writing[other].IsZero()) {
							t.Errorf("%s is wanted on beside %s: %q", ps[k].Output, ps[other].Output, y.print())
						}
					}
				}
				if p := y.print(); !seen[p] {
					seen[p] = true
					queue = append(queue, y)
				}
			}
		}
	}
	t.Logf("%d situations, %d steps, %d left", len(seen), tried, len(queue))
}
