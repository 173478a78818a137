package sim

import (
	"os"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

// outputs are the simulated pins of a device: its outputs and the values that they
// have. They are not safe for concurrent use.
type outputs struct {
	points []device.Point
	values []device.Value
	closed bool

	file  string // where others can see the values; "" for nowhere
	stale bool   // the file does not have them yet
}

// newOutputs brings the outputs among the points to safe.
func newOutputs(points []device.Point, file string) (outputs, error) {
	o := outputs{file: file, stale: true}
	for _, p := range points {
		if p.Kind.Output() {
			o.points = append(o.points, p)
			o.values = append(o.values, p.Safe)
		}
	}
	return o, o.publish()
}

// apply has the contract of device.Actuator. A value that could not be written to
// the file stands, but is not confirmed.
func (o *outputs) apply(point string, v device.Value) error {
	if o.closed {
		return device.Faultf(device.Offline, "%s cannot move: the device is closed", point)
	}
	for i, p := range o.points {
		if p.Name != point {
			continue
		}
		if err := p.Accepts(v); err != nil {
			return err
		}
		if o.values[i] != v {
			o.values[i], o.stale = v, true
		}
		return o.publish()
	}
	return device.Faultf(device.Invalid, "%q is not an output of this device", point)
}

// get returns the value of an output.
func (o *outputs) get(point string) device.Value {
	for i, p := range o.points {
		if p.Name == point {
			return o.values[i]
		}
	}
	return device.Value{}
}

// readings are the values read back.
func (o *outputs) readings(at time.Time) []device.Reading {
	all := make([]device.Reading, len(o.points))
	for i, p := range o.points {
		all[i] = device.Reading{Point: p.Name, Value: o.values[i], Quality: device.Good, At: at}
	}
	return all
}

// close brings everything to safe, for good.
func (o *outputs) close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	for i, p := range o.points {
		if o.values[i] != p.Safe {
			o.values[i], o.stale = p.Safe, true
		}
	}
	return o.publish()
}

// publish writes the file anew if it is behind. It is replaced in one move, so
// that who looks never sees half of it.
func (o *outputs) publish() error {
	if o.file == "" || !o.stale {
		return nil
	}
	var text strings.Builder
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	for i, p := range o.points {
		text.WriteString(p.Name + " " + o.values[i].String() + " " + now + "\n")
	}
	next := o.file + ".new"
	err := os.WriteFile(next, []byte(text.String()), 0o644)
	if err == nil {
		err = os.Rename(next, o.file)
	}
	if err != nil {
		return device.Faultf(device.Offline, "outputs_file: %s cannot be written; name a file in a folder that is there: %w", o.file, err)
	}
	o.stale = false
	return nil
}
