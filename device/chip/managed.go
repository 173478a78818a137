package chip

import (
	"context"
	"fmt"

	"agentsite/device"
	"agentsite/device/driver"
)

// managedChip sets a chip up at its first use, and again whenever the chip has lost its settings.
// Outputs are then at their safe values, never at their last ones. Opening it moves nothing.
type managedChip struct {
	desc device.Description
	on   link
	// setUp writes the settings, drives outputs to safe and blanks a display, in an order in which
	// no output has any other value meanwhile.
	setUp func() error
	// intact reports whether the chip still has its settings. It is nil where they cannot
	// be read; such a chip is set up again after an error.
	intact func() (bool, error)
	// release releases the resources that the chip's link holds between uses, after an error and at
	// Close. It may be nil.
	release func()

	// used between Begin and End of the link only:
	ready  bool
	closed bool
}

// link is the connection to a chip, exclusive from Begin to End: a board.Conn, an SPIConn.
type link interface {
	Begin(context.Context) error
	End()
	fmt.Stringer
}

// open sets the chip up, which also finds whether it is there.
func (k *managedChip) open(ctx context.Context) error { return k.use(ctx, func() error { return nil }) }

// find checks that the chip is there, by a transfer that changes nothing.
func (k *managedChip) find(ctx context.Context, ask func() error) error {
	if err := k.on.Begin(ctx); err != nil {
		return err
	}
	defer k.on.End()
	return unwell(k.desc.Model, k.on, ask())
}

// use calls do once the chip has its settings.
func (k *managedChip) use(ctx context.Context, do func() error) error {
	return k.useBy(ctx, k.on.Begin, do)
}

// write is use for a write to an output.
func (k *managedChip) write(ctx context.Context, do func() error) error {
	return k.useBy(ctx, k.beginWrite, do)
}

// beginWrite is Begin of a link on which a write waits for less than other uses do.
func (k *managedChip) beginWrite(ctx context.Context) error {
	if on, ok := k.on.(interface{ BeginWrite(context.Context) error }); ok {
		return on.BeginWrite(ctx)
	}
	return k.on.Begin(ctx)
}

func (k *managedChip) useBy(ctx context.Context, begin func(context.Context) error, do func() error) error {
	if err := begin(ctx); err != nil {
		return err
	}
	defer k.on.End()
	if k.closed {
		return device.Faultf(device.Offline, "%s is closed", k.desc.Model)
	}
	err := k.prepare()
	if err == nil {
		err = do()
	}
	if err != nil {
		if k.ready = k.ready && k.intact != nil; k.release != nil {
			k.release()
		}
	}
	return unwell(k.desc.Model, k.on, err)
}

// sample is one use that reads all points.
func (k *managedChip) sample(ctx context.Context, tell func(*driver.Sample) error) ([]device.Reading, error) {
	took := driver.NewSample(k.desc.Points)
	if err := k.use(ctx, func() error { return tell(took) }); err != nil {
		return nil, err
	}
	return took.Readings(), unwell(k.desc.Model, k.on, ctx.Err())
}

func (k *managedChip) prepare() (err error) {
	if k.ready && k.intact != nil {
		if k.ready, err = k.intact(); err != nil {
			k.ready = true // unknown; read it again next time
			return err
		}
	}
	if k.ready {
		return nil
	}
	err = k.setUp()
	k.ready = err == nil
	return err
}

// Describe describes the chip as its owner wired it.
func (k *managedChip) Describe() device.Description { return k.desc }

// Close brings the chip to its safe state, and makes later uses fail. A chip that does not answer is an
// error: its outputs may not be safe.
func (k *managedChip) Close() error {
	if err := k.beginWrite(context.Background()); err != nil {
		return err
	}
	defer k.on.End()
	if k.closed {
		return nil
	}
	k.closed = true
	if k.release != nil {
		defer k.release()
	}
	return unwell(k.desc.Model, k.on, k.setUp())
}
