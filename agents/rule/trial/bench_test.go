package trial_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/device/guard"
)

// waves are sensors that are read every ten seconds, with noise: the values of all of them at each
// time, which are made before what is measured.
type waves struct {
	sensors int
	values  []float32
}

func newWaves(sensors int, length time.Duration) waves {
	w := waves{sensors: sensors}
	noise := uint32(1)
	for t := time.Duration(0); t < length; t += 10 * time.Second {
		day := math.Sin(t.Hours() * math.Pi / 12)
		for s := range sensors {
			noise = noise*1664525 + 1013904223
			w.values = append(w.values, float32(math.Round(10*(10*day+float64(s)/3+float64(noise>>24)/128))/10))
		}
	}
	return w
}

func (w waves) Readings(points []string, from, to time.Time, yield func(int, time.Time, device.Value, time.Duration) bool) {
	sensor := make([]int, len(points)) // -1 for what is none
	for i, p := range points {
		if _, err := fmt.Sscanf(p, "s%d/t", &sensor[i]); err != nil {
			sensor[i] = -1
		}
	}
	row := w.values
	for at := from; at.Before(to); at, row = at.Add(10*time.Second), row[w.sensors:] {
		for i, s := range sensor {
			if s >= 0 && !yield(i, at.Add(time.Duration(s)*3*time.Millisecond), device.Number(float64(row[s])), 0) {
				return
			}
		}
	}
}

func switchPolicy(address string) guard.Policy {
	name, point, _ := device.SplitAddress(address)
	return guard.NewPolicy(name, device.Point{Name: point, Kind: device.KindSwitch, Safe: device.Bool(false)})
}

func switchPoint(address string) agents.Point {
	return agents.Point{Point: address, Kind: device.KindSwitch, Safe: device.Bool(false), MaxSeconds: guard.DefaultMaxOn.Seconds()}
}

func newRule(edit func(*rule.Rule)) *rule.Rule {
	r := rule.Kind(rule.World{}).New().(*rule.Rule)
	edit(r)
	return r
}

// BenchmarkWeek is a week of 30 sensors that are read every ten seconds, and 20 rules.
func BenchmarkWeek(b *testing.B) {
	const length = 7 * 24 * time.Hour
	o := trial.Options{From: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Source: newWaves(30, length), GoodFor: func(string) time.Duration { return 30 * time.Second }}
	o.To = o.From.Add(length)
	for i := range 30 {
		o.Points = append(o.Points, agents.Point{Point: fmt.Sprintf("s%d/t", i), Kind: device.KindMeasurement, Unit: "Cel"})
	}
	for i := range 20 {
		output := fmt.Sprintf("o%d/relay", i)
		o.Points, o.Policies = append(o.Points, switchPoint(output)), append(o.Policies, switchPolicy(output))
		o.Rules = append(o.Rules, trial.Rule{Name: fmt.Sprint("r", i), Self: fmt.Sprint("rule:r", i), Rank: 1, Rule: newRule(func(r *rule.Rule) {
			r.When, r.For = fmt.Sprintf("s%d/t < 5 Cel and (s%d/t < 12 Cel or mean(s%d/t, 10m) < 8 Cel)", i, i+5, (i+7)%30), time.Minute
			r.Until = fmt.Sprintf("s%d/t > 7 Cel", i)
			r.Hold = map[string]device.Value{output: device.Bool(true)}
		})})
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := trial.Run(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Readings), "readings")
		b.ReportMetric(float64(len(r.Moves)+r.MoreMoves), "moves")
	}
}
