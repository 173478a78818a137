package sim

import "math"

// Properties of the greenhouse. Times are in seconds and temperatures in °C.
const (
	airTime    = 60.0  // the air follows its surroundings within this, vent closed
	vapourTime = 180.0 // and its moisture
	ventFlow   = 3.0   // an open vent exchanges so many times what leaks through the walls

	heaterRise = 20.0 // over the outside, vent closed
	sunRise    = 4.0
	lampRise   = 2.0

	soilVapour = 400.0 // Pa, given off by soaked soil
	pumpTime   = 120.0 // the pump soaks the soil within this
	dryTime    = 6 * hour
	driest     = 5.0 // % left in dry soil

	sunLight  = 40_000.0 // lx at noon, through the glass
	lampLight = 8_000.0
)

// room is the greenhouse as plain values: it knows no clock, and step alone moves
// it.
type room struct {
	time float64 // seconds since the first midnight

	temperature float64 // °C
	vapour      float64 // Pa
	soil        float64 // % of what it can hold

	heater, pump, lamp bool
	vent               float64 // 0 closed, 1 open
}

// newRoom is a greenhouse that has been left alone all morning.
func newRoom() room {
	r := room{time: opening, soil: 45}
	r.temperature, r.vapour = r.equilibrium()
	return r
}

// flow is the exchange with the outside: 1 with the vent closed.
func (r *room) flow() float64 { return 1 + ventFlow*r.vent }

// equilibrium is where temperature and vapour are heading.
func (r *room) equilibrium() (temperature, vapour float64) {
	outside := weatherAt(r.time)
	rise := sunRise * outside.sun
	if r.heater {
		rise += heaterRise
	}
	if r.lamp {
		rise += lampRise
	}
	return outside.temperature + rise/r.flow(), outside.vapour + soilVapour*r.soil/100/r.flow()
}

// step lets dt seconds pass in which nothing is switched. Each value approaches
// its equilibrium exponentially, so that a step of any length is stable; it is
// exact as long as the equilibrium stands still.
func (r *room) step(dt float64) {
	r.time += dt
	temperature, vapour := r.equilibrium()
	r.temperature = approach(r.temperature, temperature, dt*r.flow()/airTime)
	r.vapour = approach(r.vapour, vapour, dt*r.flow()/vapourTime)
	r.vapour = min(r.vapour, saturation(r.temperature)) // the rest runs down the glass

	dry, soak := (1+max(0, r.temperature-20)/10)/dryTime, 0.0
	if r.pump {
		soak = 1 / pumpTime
	}
	r.soil = approach(r.soil, (driest*dry+100*soak)/(dry+soak), dt*(dry+soak))
}

// advance lets any time pass, in steps that get finer towards its end: what
// was long ago is forgotten, and years cost a few hundred steps.
func (r *room) advance(seconds float64) {
	const finest, share = 1.0, 1.0 / 16
	for seconds > 0 {
		dt := min(seconds, max(finest, seconds*share))
		r.step(dt)
		seconds -= dt
	}
}

// approach moves from towards to for that many time constants.
func approach(from, to, times float64) float64 {
	return to + (from-to)*math.Exp(-times)
}

// light is the brightness in lx.
func (r *room) light() float64 {
	lx := sunLight * weatherAt(r.time).sun
	if r.lamp {
		lx += lampLight
	}
	return lx
}

// humidity is the relative humidity in %.
func (r *room) humidity() float64 { return humidity(r.temperature, r.vapour) }
