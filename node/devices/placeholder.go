package devices

import (
	"context"
	"log/slog"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"
)

// placeholder replaces a device that could not be opened: its readings are faults with the
// reason, and it shows and captures nothing.
type placeholder struct {
	desc device.Description
	why  error
}

// newPlaceholder returns a placeholder with the points that the driver describes without
// hardware, or none.
func newPlaceholder(d config.Device, why error) *instance {
	// Callers get the fault alone, without the line in the file.
	fault := device.AsFault(why)
	slog.Warn("device missing; it is tried again", "device", d.Name, "err", fault)
	dev := placeholder{device.Description{Model: d.Driver}, fault}
	if describer, ok := d.Config.(driver.Describer); ok {
		dev.desc = describer.Describe()
		if is, err := configure(d, dev); err == nil {
			is.missing = fault
			return is
		}
	}
	return &instance{Device: d, device: dev, points: config.Points{Description: device.Description{Model: dev.desc.Model}}, missing: fault}
}

func (p placeholder) Describe() device.Description { return p.desc }

func (p placeholder) Close() error { return nil }

// Watch emits the fault once: nothing changes before the device is opened.
func (p placeholder) Watch(ctx context.Context, emit func(device.Reading)) error {
	for _, point := range p.desc.Points {
		emit(device.Reading{Point: point.Name, Quality: device.Bad, At: time.Now(), Why: p.why.Error()})
	}
	<-ctx.Done()
	return ctx.Err()
}

func (p placeholder) Show(context.Context, string, string) error { return p.why }

func (p placeholder) Capture(context.Context, string) (device.Image, error) {
	return device.Image{}, p.why
}
