package sim

import (
	"math"
	"math/rand/v2"
)

// noise is the noise of a sensor. It is not safe for concurrent use.
type noise struct{ *rand.Rand }

func newNoise(seed uint64) noise { return noise{rand.New(rand.NewPCG(seed, 0))} }

// read returns the truth plus noise of that standard deviation, rounded to steps per unit.
func (n noise) read(truth, deviation, steps float64) float64 {
	return math.Round((truth+n.NormFloat64()*deviation)*steps) / steps
}

// within is read, clamped to the sensor's range from low to high.
func (n noise) within(low, high, truth, deviation, steps float64) float64 {
	return min(max(n.read(truth, deviation, steps), low), high)
}
