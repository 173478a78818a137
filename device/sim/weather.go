package sim

import "math"

const (
	hour = 3600.0
	day  = 24 * hour
	// opening is the hour at which a simulation begins: in the morning, before the warmest
	// time.
	opening = 10 * hour
)

// weather is the state of the air outside.
type weather struct {
	temperature float64 // °C
	vapour      float64 // Pa of water in the air
	pressure    float64 // Pa
	sun         float64 // 0 at night, 1 at noon
}

// weatherAt returns the weather at a time in seconds since the first midnight.
// Every day is the same, except for the pressure, whose period is three days.
func weatherAt(t float64) weather {
	w := weather{
		temperature: 14 + 6*math.Sin(2*math.Pi*(t-9*hour)/day), // 20 °C at three, 8 °C in the night
		pressure:    101_300 + 800*math.Sin(2*math.Pi*t/(3*day)),
		sun:         max(0, math.Sin(2*math.Pi*(t-6*hour)/day)),
	}
	w.vapour = min(960, saturation(w.temperature))
	return w
}

// saturation returns the saturation vapour pressure in Pa at a temperature in °C, by the
// Magnus formula with the coefficients of WMO No. 8, annex 4.B.
func saturation(temperature float64) float64 {
	return 611.2 * math.Exp(17.62*temperature/(243.12+temperature))
}

// humidity returns the relative humidity in % of air with that temperature in °C and vapour
// pressure in Pa.
func humidity(temperature, vapour float64) float64 {
	return min(100, 100*vapour/saturation(temperature))
}
