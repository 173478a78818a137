package site

import (
	"context"
	"log/slog"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// missing stands in for a device that could not be opened: its points are faults that
// say why, and its outputs are refused.
type missing struct {
	desc device.Description
	why  error
}

// standIn has the points that the driver knows of without hardware, or none.
func standIn(d config.Device, why error) *wired {
	// The fault alone: the line in the file is for who reads the log.
	fault := device.AsFault(why)
	slog.Warn("a device is missing and is tried again", "device", d.Name, "err", fault)
	dev := missing{device.Description{Model: d.Driver}, fault}
	if describer, ok := d.Config.(driver.Describer); ok {
		dev.desc = describer.Describe()
		if w, err := wire(d, dev); err == nil {
			w.missing = fault
			return w
		}
	}
	return &wired{Device: d, device: dev, points: config.Points{Description: device.Description{Model: dev.desc.Model}}, missing: fault}
}

func (m missing) Describe() device.Description { return m.desc }

func (m missing) Close() error { return nil }

// Watch tells of the fault once: nothing will change before the device is opened.
func (m missing) Watch(ctx context.Context, emit func(device.Reading)) error {
	for _, p := range m.desc.Points {
		emit(device.Reading{Point: p.Name, Quality: device.Bad, At: time.Now(), Why: m.why.Error()})
	}
	<-ctx.Done()
	return ctx.Err()
}

func (m missing) Show(context.Context, string, string) error { return m.why }

func (m missing) Capture(context.Context, string) (device.Image, error) {
	return device.Image{}, m.why
}
