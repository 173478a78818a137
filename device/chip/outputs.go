package chip

import (
	"context"
	"errors"
	"slices"

	"agentsite/device"
	"agentsite/device/driver"
)

// outputs is a chip with outputs that cannot be read back.
type outputs struct {
	managedChip
	// set brings a point of desc to a value that it accepts, and returns once the
	// chip has it.
	set func(point int, v device.Value) error
}

// Apply returns once the chip has the value, or an error when it is not known to.
func (o *outputs) Apply(ctx context.Context, point string, v device.Value) error {
	i := slices.IndexFunc(o.desc.Points, func(p device.Point) bool { return p.Name == point && p.Kind.Output() })
	if i < 0 {
		return device.Faultf(device.Invalid, "%.40q is not an output of this device", point)
	}
	if err := o.desc.Points[i].Accepts(v); err != nil {
		return err
	}
	return o.write(ctx, func() error { return o.set(i, v) })
}

// readable is a chip whose outputs can be read back, and which may have states
// beside them.
type readable struct {
	outputs
	// tell adds each point to a sample, as intact or setUp has just read it.
	tell func(*driver.Sample)
}

// outputPart is a chip whose outputs can be read back; see managedChip and readable.
type outputPart interface {
	setUp() error
	intact() (bool, error)
	set(point int, v device.Value) error
	tell(*driver.Sample)
}

// openReadable opens the chip on conn if ask, which changes nothing, succeeds.
func openReadable(ctx context.Context, conn link, desc device.Description, part outputPart, ask func() error) (device.Device, error) {
	r := &readable{tell: part.tell, outputs: outputs{set: part.set, managedChip: managedChip{desc: desc, on: conn, setUp: part.setUp, intact: part.intact}}}
	if err := r.find(ctx, ask); err != nil {
		return nil, err
	}
	return r, nil
}

// Sample reads all outputs back and all states.
func (r *readable) Sample(ctx context.Context) ([]device.Reading, error) {
	return r.sample(ctx, func(out *driver.Sample) error {
		r.tell(out)
		return nil
	})
}

// errForgets means that a chip does not have the value just written to it.
var errForgets = errors.New("it does not store what is written to it")
