package trial_test

import (
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/device/guard"
)

// TestFormula: a level that follows a formula moves over the past as it would have.
func TestFormula(t *testing.T) {
	const fan = "house/fan"
	low, high := 0.0, 100.0
	past := stream{}.read(temperature, degrees(25), 20*time.Second, time.Minute, 10*time.Second).
		read(temperature, degrees(28), time.Minute, 2*time.Minute, 10*time.Second).
		read(temperature, degrees(15), 2*time.Minute, 3*time.Minute, 10*time.Second)
	o := house(past, 3*time.Minute, named("fan", 1, func(r *rule.Rule) {
		r.When, r.Follow = "known("+temperature+")", map[string]string{fan: "(" + temperature + " - 20 Cel) / 10 Cel * 100"}
	}))
	o.Points = append(o.Points, agents.Point{Point: fan, Kind: device.KindLevel, Min: &low, Max: &high, Safe: device.Number(0), MaxSeconds: 600})
	o.Policies = append(o.Policies, guard.NewPolicy("house", device.Point{Name: "fan", Kind: device.KindLevel, Range: device.Range{Min: low, Max: high}, Safe: device.Number(0)}))
	r, err := trial.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := moves(r), "20s 50 fan, 1m0s 80 fan, 2m0s 0 fan"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
