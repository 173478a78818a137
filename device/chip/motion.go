package chip

import (
	"agentsite/device"
	"agentsite/device/driver"
)

// gravity is 1 g in m/s2.
const gravity = 9.80665

// axes are the three points of something that is measured in space, up to most in
// each direction.
func axes(name, unit, what string, most float64) []device.Point {
	var all []device.Point
	for _, axis := range []string{"x", "y", "z"} {
		all = append(all, measures(name+"_"+axis, unit, what+" "+axis, -most, most))
	}
	return all
}

// addClipped adds the value of raw, of which full is the end of the range; at either
// end it may as well be beyond.
func addClipped(s *driver.Sample, raw int16, full int32, most float64) {
	if n := int32(raw); n >= full-1 || n <= -full {
		s.Fault("the value is at the end of the range or beyond; configure a larger range")
		return
	}
	s.Number(float64(raw) / float64(full) * most)
}
