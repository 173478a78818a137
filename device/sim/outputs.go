package sim

import (
	"fmt"
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

	file string // the pins, which others can see and move; "" for none
}

// newOutputs brings the outputs among the points to safe.
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

// readings are the values read back. Where there is a file, it is what it says, whoever
// wrote it: as with a pin that somebody else moves.
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

// pins are the values that the file says, a word for each output.
func (o *outputs) pins() ([]string, error) {
	text, err := os.ReadFile(o.file)
	words := strings.Fields(string(text))
	if err == nil && len(words) != 3*len(o.points) {
		err = fmt.Errorf("it has not three words for each of %d outputs", len(o.points))
	}
	if err != nil {
		return nil, device.Faultf(device.Offline, "outputs_file: %s cannot be read; leave it where it is: %w", o.file, err)
	}
	var pins []string
	for i := range o.points {
		pins = append(pins, words[3*i+1])
	}
	return pins, nil
}

// close brings everything to safe, for good.
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

// publish writes the file anew. It is replaced in one move, so that who looks never
// sees half of it. Where there is a file of the same name and .log, it has them all.
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
		log.WriteString(text.String()) // what a test does not find there has not happened
		log.Close()
	}
	next := o.file + ".new"
	err := os.WriteFile(next, []byte(text.String()), 0o644)
	if err == nil {
		err = os.Rename(next, o.file)
	}
	if err != nil {
		return device.Faultf(device.Offline, "outputs_file: %s cannot be written; name a file in a folder that is there: %w", o.file, err)
	}
	return nil
}
