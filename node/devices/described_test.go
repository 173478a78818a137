package devices

import (
	"testing"
	"time"

	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/sim"
	"agentsite/node/config"
)

// TestDescribedLength: a configuration alone says how long an output can be held, as its policy does.
func TestDescribedLength(t *testing.T) {
	cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\ndevices: { g: { driver: sim, points: { heater: { max_on: 20m }, lamp: { lease: 1m }, vent: { max_on: unlimited } } } }\n"), []driver.Driver{sim.Driver()})
	if err != nil {
		t.Fatal(err)
	}
	d := cfg.Devices[0]
	of, err := d.Points(d.Config.(driver.Describer).Describe())
	if err != nil {
		t.Fatal(err)
	}
	all, err := policies(d, of.Outputs)
	if err != nil {
		t.Fatal(err)
	}
	longest := make(map[string]time.Duration)
	for _, p := range all {
		if longest[p.Output] = p.Longest(); p.Longest() == guard.Unlimited {
			longest[p.Output] = 0
		}
	}
	points, _ := cfg.Described()
	for _, p := range points {
		if got := time.Duration(p.MaxSeconds * float64(time.Second)); got != longest[p.Point] || p.Kind.Output() && len(longest) != 4 {
			t.Errorf("%s: %v, want %v of %d outputs; unlimited is 0", p.Point, got, longest[p.Point], len(longest))
		}
	}
}
