package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/device"
	"agentsite/device/driver"
)

// sensor is a folder of the kernel's with a file for each value. It holds nothing
// open between samples and looks for the folder again whenever it is gone or is
// another device's: the kernel numbers its devices in the order of their coming.
type sensor struct {
	desc       device.Description
	find       func(*reader) (folder string, err error)
	same       func(r *reader, folder string) bool // the folder is still this device's
	attributes []attribute
	channels   []channel

	busy   device.Mutex // locked during a sample; guards the fields below
	reader reader
	folder string
	paths  []string
	values []float64
	errs   []error
}

// attribute is one file, read once in each sample.
type attribute struct {
	name  string
	parse func([]byte) (float64, error)
}

// channel is one point and the attributes that it is made of, by their index; none
// where there is no such file. The value is (value + offset) × scale × times / per.
type channel struct {
	point                       device.Point
	value, offset, scale, fault int
	times, per                  float64
	slack                       float64 // so far beyond its range a value is brought back to it
}

const none = -1

// absolute is the range of any temperature that these parts can tell.
var absolute = device.Range{Min: -273.15, Max: 3000}

// filesIn lists a folder of the kernel's.
func filesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, device.Faultf(device.Offline, "%s cannot be read: %w", folder, err)
	}
	files := make([]string, len(entries))
	for i, e := range entries {
		files[i] = e.Name()
	}
	return files, nil
}

// label returns the kernel's label of a channel, for a description, or "".
func (s *sensor) label(folder, channel string) string {
	text := printable(s.reader.Text(filepath.Join(folder, channel+"_label")))
	if text == "" {
		return ""
	}
	return ", \"" + text + "\""
}

// add returns the index of the attribute with that name.
func (s *sensor) add(name string) int {
	for i, a := range s.attributes {
		if a.name == name {
			return i
		}
	}
	s.attributes = append(s.attributes, attribute{name, parseNumber})
	return len(s.attributes) - 1
}

// open makes the sensor ready once its attributes and channels are complete. A
// name that is taken, or is none, drops the channel.
func (s *sensor) open(model, folder string) (device.Device, error) {
	s.desc.Model = printable(model)
	kept := s.channels[:0]
	for _, c := range s.channels {
		if _, taken := s.desc.Point(c.point.Name); taken || device.CheckName(c.point.Name) != nil {
			continue
		}
		kept = append(kept, c)
		s.desc.Points = append(s.desc.Points, c.point)
	}
	s.channels = kept
	if len(kept) == 0 {
		return nil, device.Faultf(device.Offline, "%s has no value that this driver can read; is it the right device?", folder)
	}
	s.busy = device.NewMutex()
	s.paths = make([]string, len(s.attributes))
	s.values = make([]float64, len(s.attributes))
	s.errs = make([]error, len(s.attributes))
	s.move(folder)
	return s, nil
}

// move makes folder the one to read.
func (s *sensor) move(folder string) {
	s.folder = folder
	for i, a := range s.attributes {
		s.paths[i] = filepath.Join(folder, a.name)
	}
}

// Describe lists what the kernel offered when the device was opened.
func (s *sensor) Describe() device.Description { return s.desc }

// Sample reads each of the device's files once. A file that cannot be read makes
// the points that need it Bad. A device that is gone is an Offline fault, until it
// is back.
//
// The kernel reads the bus while it reads the file, and cannot be interrupted (a
// 1-Wire thermometer takes 0.75 s, and five times that when it is disturbed); the
// context is checked between two files, and while another sample is being taken. A
// complete sample is returned, late or not.
func (s *sensor) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := s.busy.LockContext(ctx); err != nil {
		return nil, err
	}
	defer s.busy.Unlock()
	if err := s.locate(); err != nil {
		return nil, err
	}
	failed := 0
	for i, a := range s.attributes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := s.reader.Read(s.paths[i])
		if err == nil {
			if s.values[i], err = a.parse(b); err != nil {
				err = fmt.Errorf("%s: %w", s.paths[i], err)
			}
		}
		if s.errs[i] = err; err != nil {
			failed++
		}
	}
	if failed == len(s.attributes) && !s.same(&s.reader, s.folder) {
		return nil, device.Faultf(device.Offline, "%s is gone; plug it in again", s.desc.Model)
	}
	out := driver.NewSample(s.desc.Points)
	for i := range s.channels {
		s.channels[i].add(s, out)
	}
	return out.Readings(), nil
}

func (s *sensor) locate() error {
	if s.same(&s.reader, s.folder) {
		return nil
	}
	folder, err := s.find(&s.reader)
	if err == nil && folder != s.folder {
		s.move(folder)
	}
	return err
}

const broken = "the kernel says that this sensor is broken or not connected; check its wires"

// add adds the channel's reading to out.
func (c *channel) add(s *sensor, out *driver.Sample) {
	for _, i := range [...]int{c.value, c.offset, c.scale} {
		if i != none && s.errs[i] != nil {
			out.Fault(fmt.Sprintf("it cannot be read: %v", s.errs[i]))
			return
		}
	}
	n := s.values[c.value]
	switch {
	case c.fault != none && s.errs[c.fault] == nil && s.values[c.fault] != 0:
		out.Fault(broken)
		return
	case c.point.Kind == device.KindState && n != 0 && n != 1:
		out.Fault(fmt.Sprintf("%s says %v, which is neither 0 nor 1", s.paths[c.value], n))
		return
	case c.point.Kind == device.KindState:
		out.Value(device.Bool(n != 0))
		return
	}
	if c.offset != none {
		n += s.values[c.offset]
	}
	if c.scale != none {
		n *= s.values[c.scale]
	}
	out.Near(n*c.times/c.per, c.slack)
}

// Close does nothing.
func (s *sensor) Close() error { return nil }
