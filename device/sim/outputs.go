package sim

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
)

// outputs has the outputs of a device and their values. It is not safe for concurrent use.
type outputs struct {
	points []device.Point
	values []device.Value
	closed bool

	file string // outputs_file, which tests read and write; "" for none
}

// newOutputs returns the outputs among the points, at their safe values.
func newOutputs(points []device.Point, file string) (outputs, error) {
	o := outputs{file: file}
	for _, p := range points {
		if p.Kind.Output() {
			o.points = append(o.points, p)
			o.values = append(o.values, p.Safe)
		}
	}
	return o, o.publish()
}

// apply has the contract of device.Actuator. If the file cannot be written, the value is
// set, but an error is returned.
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
		o.values[i] = v
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

// readings reads the outputs back. The values in a file count, also those written by
// another program, as with a pin that another circuit moves.
func (o *outputs) readings(at time.Time) []device.Reading {
	var pins []string
	var err error
	if o.file != "" {
		pins, err = o.pins()
	}
	all := make([]device.Reading, len(o.points))
	for i, p := range o.points {
		r := device.Reading{Point: p.Name, Value: o.values[i], Quality: device.Good, At: at}
		switch {
		case err != nil:
			r.Value, r.Quality, r.Why = device.Value{}, device.Bad, err.Error()
		case o.file == "" || pins[i] == r.Value.String():
		case p.Kind == device.KindSwitch:
			r.Value = device.Bool(!r.Value.Bool())
		default:
			n, _ := strconv.ParseFloat(pins[i], 64)
			r.Value = device.Number(n)
		}
		all[i] = r
	}
	return all
}

// pins returns the values in the file, one for each output.
func (o *outputs) pins() ([]string, error) {
	text, err := os.ReadFile(o.file)
	words := strings.Fields(string(text))
	if err == nil && len(words) != 3*len(o.points) {
		err = fmt.Errorf("not three words for each of %d outputs", len(o.points))
	}
	if err != nil {
		return nil, device.Faultf(device.Offline, "outputs_file: %s cannot be read; do not move it: %w", o.file, err)
	}
	var pins []string
	for i := range o.points {
		pins = append(pins, words[3*i+1])
	}
	return pins, nil
}

// close sets all outputs to safe. It makes later calls of apply fail.
func (o *outputs) close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	for i, p := range o.points {
		o.values[i] = p.Safe
	}
	return o.publish()
}

// publish replaces the file atomically, so that no reader sees half of it. If a file with
// the same name and .log exists, publish appends the values to it.
func (o *outputs) publish() error {
	if o.file == "" {
		return nil
	}
	var text strings.Builder
	now := strconv.FormatInt(time.Now().UnixNano(), 10)
	for i, p := range o.points {
		text.WriteString(p.Name + " " + o.values[i].String() + " " + now + "\n")
	}
	if log, err := os.OpenFile(o.file+".log", os.O_WRONLY|os.O_APPEND, 0); err == nil {
		log.WriteString(text.String()) // best effort: a missing line fails the test that reads it
		log.Close()
	}
	next := o.file + ".new"
	err := os.WriteFile(next, []byte(text.String()), 0o644)
	if err == nil {
		err = os.Rename(next, o.file)
	}
	if err != nil {
		return device.Faultf(device.Offline, "outputs_file: %s cannot be written; use a file in an existing folder: %w", o.file, err)
	}
	return nil
}
