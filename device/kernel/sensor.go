package kernel

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"agentsite/device"
	"agentsite/device/driver"
)

// sensor is one of the kernel's folders with a file for each value. No file is open between
// samples. If the folder has disappeared or belongs to another device, sensor looks it up again:
// the kernel numbers devices in the order of their appearance.
type sensor struct {
	desc       device.Description
	find       func(*reader) (folder string, err error)
	same       func(r *reader, folder string) bool // reports whether the folder is still this device's
	attributes []attribute
	channels   []channel

	busy   device.Mutex // held during a sample; guards the fields below
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

// channel is one point and the indexes of its attributes, or none for a missing file. The
// reading is (value + offset) × scale × times / per.
type channel struct {
	point                       device.Point
	value, offset, scale, fault int
	times, per                  float64
	slack                       float64 // a value this far outside the range is clamped to it
}

const none = -1

// absolute is the range of the temperatures that these parts can measure.
var absolute = device.Range{Min: -273.15, Max: 3000}

// filesIn lists the names in a folder.
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

// label returns the kernel's label of a channel for a description, or "".
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

// open completes the sensor after its attributes and channels are added. It drops channels
// with duplicate or invalid names.
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
		return nil, device.Faultf(device.Offline, "%s has no value that this driver can read; select another device", folder)
	}
	s.busy = device.NewMutex()
	s.paths = make([]string, len(s.attributes))
	s.values = make([]float64, len(s.attributes))
	s.errs = make([]error, len(s.attributes))
	s.move(folder)
	return s, nil
}

// move sets the folder to read.
func (s *sensor) move(folder string) {
	s.folder = folder
	for i, a := range s.attributes {
		s.paths[i] = filepath.Join(folder, a.name)
	}
}

// Describe returns the points that the kernel offered at Open.
func (s *sensor) Describe() device.Description { return s.desc }

// Sample reads each of the device's files once. An unreadable file makes the points that
// need it Bad. A disconnected device is an Offline fault until it is back.
//
// Reading a file makes the kernel read the bus, which cannot be interrupted (a 1-Wire
// thermometer takes 0.75 s, and five times that after errors). The context is checked
// between two files, and while waiting for another sample. A complete sample is returned
// even if ctx has ended meanwhile.
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
		return nil, device.Faultf(device.Offline, "%s is disconnected; plug it in again", s.desc.Model)
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

const broken = "the kernel reports this sensor as broken or not connected; check its wires"

// add adds the channel's reading to out.
func (c *channel) add(s *sensor, out *driver.Sample) {
	for _, i := range [...]int{c.value, c.offset, c.scale} {
		if i != none && s.errs[i] != nil {
			out.Fault(fmt.Sprintf("cannot be read: %v", s.errs[i]))
			return
		}
	}
	n := s.values[c.value]
	switch {
	case c.fault != none && s.errs[c.fault] == nil && s.values[c.fault] != 0:
		out.Fault(broken)
		return
	case c.point.Kind == device.KindState && n != 0 && n != 1:
		out.Fault(fmt.Sprintf("%s has %v, which is neither 0 nor 1", s.paths[c.value], n))
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
