package recording

import (
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/acts"
)

// Change is a point's new value, or fault, at a time of the simulation.
type Change struct {
	acts.Simulated
	At time.Time
}

// Changes returns the changes of the measurements, states and events of a recording, in the order of time. A value
// stands until the next one, so that each row is there once. left counts the rows of other points, and those of
// events without a value.
func (r *Recording) Changes() (all []Change, left int) {
	for _, p := range r.Points {
		for _, row := range p.rows {
			to := acts.Simulated{Point: p.Point.Point, Value: row.Value}
			switch {
			case p.Kind == device.KindEvent && !row.Value.IsZero():
			case p.Kind != device.KindMeasurement && p.Kind != device.KindState:
				left++
				continue
			case row.Value.IsZero():
				to.Fault = "the recording has no value here"
			}
			all = append(all, Change{to, row.At})
		}
	}
	slices.SortStableFunc(all, func(x, y Change) int { return x.At.Compare(y.At) })
	return all, left
}
