package devicetest

import (
	"context"
	"sync"
	"time"

	"agentsite/device"
)

// fake keeps every rule. The broken devices of broken_test.go embed it and spoil
// one method each.
type fake struct {
	mu     sync.Mutex
	desc   device.Description
	values map[string]device.Value
	closed bool
	dipped bool
}

// dip changes nothing of a good device.
func (f *fake) dip() { f.dipped = true }

func newFake() *fake {
	f := &fake{values: make(map[string]device.Value)}
	f.desc = device.Description{Model: "fake", Points: []device.Point{
		{Name: "warmth", Kind: device.KindMeasurement, Unit: "Cel", Range: device.Range{Min: -40, Max: 85}},
		{Name: "door", Kind: device.KindState},
		{Name: "mode", Kind: device.KindState, Values: []string{"day", "night"}},
		{Name: "motion", Kind: device.KindEvent},
		{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)},
		{Name: "valve", Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 90}, Safe: device.Number(90)},
		{Name: "line", Kind: device.KindText},
		{Name: "eye", Kind: device.KindImage},
	}}
	for _, p := range f.desc.Points {
		f.values[p.Name] = p.Safe
	}
	f.values["warmth"] = device.Number(21.5)
	f.values["door"] = device.Bool(true)
	f.values["mode"] = device.Text("night")
	return f
}

func (f *fake) Describe() device.Description { return f.desc }

func (f *fake) Sample(ctx context.Context) ([]device.Reading, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var readings []device.Reading
	for _, p := range f.desc.Points {
		if v := f.values[p.Name]; !v.IsZero() {
			readings = append(readings, device.Reading{Point: p.Name, Value: v, Quality: device.Good, At: time.Now()})
		}
	}
	return readings, nil
}

func (f *fake) Apply(ctx context.Context, point string, v device.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, _ := f.desc.Point(point)
	if !p.Kind.Output() || v.Type() != p.Safe.Type() || p.Kind == device.KindLevel && !p.Range.Contains(v.Number()) {
		return device.Faultf(device.Invalid, "%s cannot be %v", point, v)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return device.Faultf(device.Offline, "closed")
	}
	f.values[point] = v
	return nil
}

func (f *fake) Watch(ctx context.Context, emit func(device.Reading)) error {
	emit(device.Reading{Point: "motion", Value: device.Bool(true), Quality: device.Good, At: time.Now()})
	<-ctx.Done()
	return ctx.Err()
}

func (f *fake) Show(ctx context.Context, point, _ string) error {
	if point != "line" {
		return device.Faultf(device.Invalid, "no display %q", point)
	}
	return ctx.Err()
}

func (f *fake) Capture(ctx context.Context, point string) (device.Image, error) {
	if point != "eye" {
		return device.Image{}, device.Faultf(device.Invalid, "no camera %q", point)
	}
	return device.Image{MIME: "image/png", Data: []byte("png"), At: time.Now()}, ctx.Err()
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, p := range f.desc.Points {
		if p.Kind.Output() {
			f.values[p.Name] = p.Safe
		}
	}
	return nil
}

func (f *fake) level(point string) device.Value {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.values[point]
}
