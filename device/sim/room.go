package sim

import "math"

// Properties of the greenhouse. Times are in seconds and temperatures in °C.
const (
	airTime    = 60.0  // time constant of the air's temperature, vent closed
	vapourTime = 180.0 // time constant of its moisture
	ventFlow   = 3.0   // air exchange through the open vent, relative to the leaks

	heaterRise = 20.0 // above the outside, vent closed
	sunRise    = 4.0
	lampRise   = 2.0

	soilVapour = 400.0 // Pa, given off by soaked soil
	pumpTime   = 120.0 // time constant of soaking by the pump
	dryTime    = 6 * hour
	driest     = 5.0 // % left in dry soil

	sunLight  = 40_000.0 // lx at noon, through the glass
	lampLight = 8_000.0
)

// room is the physical state of the greenhouse. It has no clock; only step changes it.
type room struct {
	time float64 // seconds since the first midnight

	temperature float64 // °C
	vapour      float64 // Pa
	soil        float64 // % of saturation

	heater, pump, lamp bool
	vent               float64 // 0 closed, 1 open
}

// newRoom returns a greenhouse in equilibrium, with all outputs off.
func newRoom() room {
	r := room{time: opening, soil: 45}
	r.temperature, r.vapour = r.equilibrium()
	return r
}

// flow returns the air exchange with the outside; 1 is with the vent closed.
func (r *room) flow() float64 { return 1 + ventFlow*r.vent }

// equilibrium returns the values that temperature and vapour approach.
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

// step advances the time by dt seconds with constant outputs. Each value approaches its
// equilibrium exponentially, so that a step of any length is stable; it is exact if the
// equilibrium is constant.
func (r *room) step(dt float64) {
	r.time += dt
	temperature, vapour := r.equilibrium()
	r.temperature = approach(r.temperature, temperature, dt*r.flow()/airTime)
	r.vapour = approach(r.vapour, vapour, dt*r.flow()/vapourTime)
	r.vapour = min(r.vapour, saturation(r.temperature)) // the rest condenses

	dry, soak := (1+max(0, r.temperature-20)/10)/dryTime, 0.0
	if r.pump {
		soak = 1 / pumpTime
	}
	r.soil = approach(r.soil, (driest*dry+100*soak)/(dry+soak), dt*(dry+soak))
}

// advance advances the time in steps that get finer towards the end, because the distant
// past has no influence. Years take a few hundred steps.
func (r *room) advance(seconds float64) {
	const finest, share = 1.0, 1.0 / 16
	for seconds > 0 {
		dt := min(seconds, max(finest, seconds*share))
		r.step(dt)
		seconds -= dt
	}
}

// approach returns from moved exponentially towards to, for that many time constants.
func approach(from, to, times float64) float64 {
	return to + (from-to)*math.Exp(-times)
}

// light returns the illuminance in lx.
func (r *room) light() float64 {
	lx := sunLight * weatherAt(r.time).sun
	if r.lamp {
		lx += lampLight
	}
	return lx
}

// humidity returns the relative humidity in %.
func (r *room) humidity() float64 { return humidity(r.temperature, r.vapour) }
