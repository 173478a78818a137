package sim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// after returns a room that setup has changed, after a time.
func after(seconds float64, setup func(*room)) room {
	r := newRoom()
	setup(&r)
	r.advance(seconds)
	return r
}

func alone(*room)    {}
func heated(r *room) { r.heater = true }

func TestPhysics(t *testing.T) {
	minute := 60.0
	idle := after(5*minute, alone)
	warm := after(5*minute, heated)
	aired := after(5*minute, func(r *room) { r.heater, r.vent = true, 1 })
	wet := after(minute, func(r *room) { r.pump = true })
	lit := after(1, func(r *room) { r.lamp = true })
	night := after(16*hour, alone)
	nightLit := after(16*hour, func(r *room) { r.lamp = true })

	start := newRoom()
	tests := []struct {
		what string
		ok   bool
	}{
		{"left alone it stays as it is", math.Abs(idle.temperature-start.temperature) < 0.5},
		{"the heater warms by about 20 °C", math.Abs(warm.temperature-idle.temperature-heaterRise) < 1},
		{"warm air is drier", warm.humidity() < idle.humidity()-10},
		{"the vent cools a heated room", aired.temperature < warm.temperature-10},
		{"and leaves it warmer than outside", aired.temperature > weatherAt(aired.time).temperature+2},
		{"a minute of pumping is seen", wet.soil > start.soil+10},
		{"the soil dries within hours", night.soil < start.soil-5 && idle.soil > start.soil-2},
		{"the lamp adds light", lit.light() > start.light()+lampLight/2},
		{"the night is dark and cold", night.light() == 0 && night.temperature < 10},
		{"but for the lamp", nightLit.light() == lampLight},
	}
	for _, tt := range tests {
		if !tt.ok {
			t.Errorf("not so: %s", tt.what)
		}
	}
}

// TestAnythingGoesAndStaysBelievable: after weeks of random moves all values are plausible.
func TestAnythingGoesAndStaysBelievable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	r := newRoom()
	for range 20_000 {
		r.heater, r.pump, r.lamp, r.vent = rng.IntN(2) > 0, rng.IntN(2) > 0, rng.IntN(2) > 0, rng.Float64()
		r.advance(rng.ExpFloat64() * 300)
		if h := r.humidity(); !(h > 0 && h <= 100) || !(r.soil >= driest && r.soil <= 100) ||
			!(r.temperature > 5 && r.temperature < 60) || !(r.light() >= 0 && r.light() <= sunLight+lampLight) {
			t.Fatalf("not believable: %+v, humidity %v", r, h)
		}
	}
}

// TestLongIsAsGoodAsOften compares one long advance with many short ones.
func TestLongIsAsGoodAsOften(t *testing.T) {
	once, often := after(8*hour, heated), newRoom()
	often.heater = true
	for range 8 * 3600 {
		often.advance(1)
	}
	if math.Abs(once.temperature-often.temperature) > 0.1 || math.Abs(once.humidity()-often.humidity()) > 1 ||
		math.Abs(once.soil-often.soil) > 1 {
		t.Errorf("once: %+v\noften: %+v", once, often)
	}
}

// BenchmarkYears measures the first sample after a year at full speed.
func BenchmarkYears(b *testing.B) {
	for b.Loop() {
		r := newRoom()
		r.advance(365 * day * maxSpeed)
	}
}
