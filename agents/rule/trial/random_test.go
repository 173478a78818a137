package trial_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"agentsite/agents/rule"
	"agentsite/device"
	"agentsite/device/guard"
)

// walk is a random walk that stays the same now and then, with times in which the device cannot
// be read, or tells nothing.
func walk(r *rand.Rand, every time.Duration) func(time.Duration) (device.Value, bool, error) {
	v, gap, fault := 5+r.NormFloat64(), time.Duration(0), time.Duration(0)
	return func(at time.Duration) (device.Value, bool, error) {
		switch r.IntN(200) {
		case 0:
			gap = at + time.Duration(r.IntN(10))*every
		case 1:
			fault = at + time.Duration(r.IntN(5))*every
		}
		if r.IntN(3) > 0 {
			v = math.Round(10*(v+0.4*r.NormFloat64()+0.02*(5-v))) / 10
		}
		if at < fault {
			return device.Value{}, false, device.Faultf(device.Offline, "it does not answer")
		}
		return device.Number(v), at >= gap, nil
	}
}

// randomSite returns a site with sensors, outputs, limits and rules.
func randomSite(seed uint64) *live {
	r := rand.New(rand.NewPCG(seed, 1))
	l := &live{length: 3 * time.Hour}
	for i := range 3 {
		every := []time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second}[r.IntN(3)]
		l.sensors = append(l.sensors, &sensor{
			name: fmt.Sprint("s", i), point: device.Point{Name: "t", Kind: device.KindMeasurement, Unit: "Cel"},
			every: every, offset: time.Duration(17+i*29+r.IntN(7)) * time.Millisecond, read: walk(rand.New(rand.NewPCG(seed, uint64(i)+2)), every),
		})
	}
	door, opens := false, rand.New(rand.NewPCG(seed, 9))
	l.sensors = append(l.sensors, &sensor{
		name: "door", point: device.Point{Name: "open", Kind: device.KindState}, every: 20 * time.Second, offset: 141 * time.Millisecond,
		read: func(time.Duration) (device.Value, bool, error) {
			if opens.IntN(20) == 0 {
				door = !door
			}
			return device.Bool(door), true, nil
		},
	})
	outputs := []string{"a/relay", "b/relay", "c/relay", "d/dimmer"}
	for i, output := range outputs {
		p := switchPolicy(output)
		if i == 3 {
			p = guard.NewPolicy("d", device.Point{Name: "dimmer", Kind: device.KindLevel, Range: device.Range{Max: 100}, Safe: device.Number(0)})
			if r.IntN(2) == 0 {
				p.Slew = guard.Slew{PerSecond: float64(1 + r.IntN(10))}
				if r.IntN(3) == 0 {
					p.Slew = guard.Slew{PerSecond: float64(30 + r.IntN(30)), Ramp: true}
				}
			}
		}
		p.MaxOn = time.Duration(1+r.IntN(20))*time.Minute + 2700*time.Millisecond // nothing is in the same moment as anything else
		p.Rest = time.Duration(20+r.IntN(70))*time.Second + 400*time.Millisecond
		if r.IntN(3) == 0 {
			p.MinOff = p.Rest
		}
		if r.IntN(3) == 0 {
			p.MinOn = time.Duration(1+r.IntN(40)) * time.Second
		}
		if i < 2 && r.IntN(3) == 0 {
			p.Interlock = guard.Interlock{Group: "g", Gap: time.Duration(r.IntN(20)) * time.Second}
		}
		if r.IntN(4) == 0 {
			p.Rate = guard.Rate{Moves: 1 + r.IntN(4), Window: 10*time.Minute + 1721*time.Millisecond}
		}
		if r.IntN(4) == 0 {
			p.Duty = guard.Duty{Away: time.Duration(2+r.IntN(8))*time.Minute + 1137*time.Millisecond, Window: 20*time.Minute + 919*time.Millisecond}
		}
		if r.IntN(4) == 0 {
			// Longer than between readings: one that lapses meanwhile is noticed at another moment in a trial.
			p.Requires = guard.Requirement{Point: fmt.Sprintf("s%d/t", r.IntN(3)), Within: device.Range{Min: 4, Max: 100}, MaxAge: time.Duration(90+r.IntN(60))*time.Second + 647*time.Millisecond}
		}
		l.options.Policies = append(l.options.Policies, p)
	}
	l.options.GoodFor = l.goodFor
	for k := range 5 { // two for one of the switches
		i := k % 4
		output := map[string]device.Value{outputs[i]: on}
		if i == 3 {
			output[outputs[i]] = device.Number(float64(10 + r.IntN(90)))
		}
		s := func() string { return fmt.Sprintf("s%d/t", r.IntN(3)) }
		l.add(fmt.Sprint("r", k), 1+k, func(of *rule.Rule) {
			switch r.IntN(7) {
			case 0:
				of.When, of.For, of.Hold = s()+" < 5 Cel", time.Duration(r.IntN(60))*time.Second+3*time.Millisecond, output
				of.Until = s() + " > 6 Cel"
			case 1:
				of.When, of.Hold = fmt.Sprintf("mean(%s, 5m) < 5.0317 Cel or %s > 6.5 Cel and not door/open", s(), s()), output
			case 2:
				of.When, of.Hold, of.Resume = fmt.Sprintf("door/open and age(%s) < 43s", s()), output, 10*time.Minute
			case 3:
				of.On, of.If, of.Do = "button/press", s()+" < 6 Cel", []rule.Step{{Set: output, For: time.Duration(1+r.IntN(9))*time.Minute + 5300*time.Millisecond}}
			case 4:
				of.Every, of.Do = time.Duration(100+r.IntN(900))*time.Second+13*time.Millisecond, []rule.Step{{Set: output, For: time.Duration(r.IntN(3)) * time.Minute}}
			case 5:
				of.At, of.Do = "*/7 * * * *", []rule.Step{{Set: output, For: time.Duration(1+r.IntN(9))*time.Minute + 5300*time.Millisecond}}
			case 6:
				of.When, of.Hold = fmt.Sprintf("now between 0:30..1:40 and %s < 6 Cel", s()), output
			}
		})
	}
	return l
}
