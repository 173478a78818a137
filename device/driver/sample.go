package driver

import (
	"cmp"
	"time"

	"agentsite/device"
)

// Sample collects the readings of one measurement, in the order of the points.
type Sample struct {
	points      []device.Point
	readings    []device.Reading
	implausible string // why a value cannot be; "" while all can
}

// NewSample returns an empty sample of these points.
func NewSample(points []device.Point) *Sample {
	return &Sample{points: points, readings: make([]device.Reading, 0, len(points))}
}

// add adds the reading of the next point.
func (s *Sample) add(r device.Reading) {
	r.Point, r.At = s.points[len(s.readings)].Name, time.Now()
	s.readings = append(s.readings, r)
}

// Value adds the exact value of the next point.
func (s *Sample) Value(v device.Value) { s.add(device.Reading{Value: v, Quality: device.Good}) }

// Number adds the value of the next point. A value outside the point's range is
// implausible: the bus or the chip disturbed it, and with it the whole sample.
func (s *Sample) Number(n float64) { s.Near(n, 0) }

// Near is Number for a value that may be beyond the point's range by the chip's accuracy. At 85 °C
// a thermometer to 85 °C may read 85.4. Such a value becomes the limit.
func (s *Sample) Near(n, accuracy float64) {
	s.implausible = cmp.Or(s.Separate(n, accuracy), s.implausible)
}

// Separate is Near for one of several quantities that are measured separately, such as those of
// thermometers on one wire or of a converter's inputs. An implausible value does not affect the
// other points. Separate returns the reason why the value is implausible, or "".
func (s *Sample) Separate(n, accuracy float64) (why string) {
	n = device.Tidy(n)
	p := s.points[len(s.readings)]
	limited := p.Range != (device.Range{})
	if limited && n >= p.Range.Min-accuracy && n <= p.Range.Max+accuracy {
		n = min(max(n, p.Range.Min), p.Range.Max)
	}
	switch {
	case limited && !p.Range.Contains(n): // a NaN is in no range
		why = p.Name + " reads " + device.Number(n).String() + ", which cannot be: only " + p.Range.String() + " can; check the wiring and the supply"
	case !device.Number(n).Finite():
		why = p.Name + " reads " + device.Number(n).String() + ", which cannot be; check the wiring and the supply"
	default:
		s.Value(device.Number(n))
		return ""
	}
	s.Fault(why)
	return why
}

// Fault adds a fault of the next point. It is for errors that the chip itself reports, such as a
// value beyond its range, and says nothing about the other points.
func (s *Sample) Fault(why string) { s.add(device.Reading{Quality: device.Bad, Why: why}) }

// FaultAll adds the same fault for all points that are left.
func (s *Sample) FaultAll(why string) {
	for len(s.readings) < len(s.points) {
		s.Fault(why)
	}
}

// At sets the time of all readings so far, where they are of an earlier measurement.
func (s *Sample) At(at time.Time) {
	for i := range s.readings {
		s.readings[i].At = at
	}
}

// Readings returns the collected readings. Where one value is implausible, none is believed: they
// came by the same bus from the same chip.
func (s *Sample) Readings() []device.Reading {
	if s.implausible != "" {
		for i, r := range s.readings {
			if r.Quality == device.Good {
				s.readings[i] = device.Reading{Point: r.Point, Quality: device.Bad, At: r.At, Why: s.implausible}
			}
		}
	}
	return s.readings
}
