package chip

import (
	"context"
	"fmt"

	"agentsite/device"
	"agentsite/device/driver"
)

// kept is a chip that moves or shows things, and so has to be kept as it was set up.
// Open moves nothing: the chip is set up at its first use, and again whenever it has
// lost its settings, into rest and never into its last values.
type kept struct {
	desc device.Description
	on   link
	// setUp makes the settings and brings everything to rest: outputs to safe, a
	// display to dark. It takes an order in which nothing is elsewhere meanwhile.
	setUp func() error
	// intact looks whether the chip has its settings still. It is nil where the chip
	// cannot be asked; such a one is set up again after an error.
	intact func() (bool, error)
	// release lets go of what the chip's link holds from one use to the next: after
	// an error, before it is set up again, and at Close. It is nil where that is nothing.
	release func()

	// of who has begun on the link:
	ready  bool
	closed bool
}

// link is the way to a chip, held from Begin to End: a board.Conn, a port of SPI.
type link interface {
	Begin(context.Context) error
	End()
	fmt.Stringer
}

// open sets the chip up, which also finds whether it is there.
func (k *kept) open(ctx context.Context) error { return k.use(ctx, func() error { return nil }) }

// find asks whether the chip is there, in a way that changes nothing.
func (k *kept) find(ctx context.Context, ask func() error) error {
	if err := k.on.Begin(ctx); err != nil {
		return err
	}
	defer k.on.End()
	if err := ask(); err != nil {
		return unwell(k.desc.Model, k.on, err)
	}
	return nil
}

// use does something with the chip once it is as it was set up.
func (k *kept) use(ctx context.Context, do func() error) error {
	if err := k.on.Begin(ctx); err != nil {
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
		return unwell(k.desc.Model, k.on, err)
	}
	return nil
}

// sample is one use that tells all points.
func (k *kept) sample(ctx context.Context, tell func(*driver.Sample) error) ([]device.Reading, error) {
	took := driver.NewSample(k.desc.Points)
	if err := k.use(ctx, func() error { return tell(took) }); err != nil {
		return nil, err
	}
	return took.Readings(), unwell(k.desc.Model, k.on, ctx.Err())
}

func (k *kept) prepare() (err error) {
	if k.ready && k.intact != nil {
		if k.ready, err = k.intact(); err != nil {
			k.ready = true // it could not say; ask again
			return err
		}
	}
	if k.ready {
		return nil
	}
	if err := k.setUp(); err != nil {
		return err
	}
	k.ready = true
	return nil
}

// Describe is of the chip as its owner wired it.
func (k *kept) Describe() device.Description { return k.desc }

// Close brings the chip to rest, and refuses to be used again. One that does not
// answer is an error: what hangs on it may not be safe.
func (k *kept) Close() error {
	if err := k.on.Begin(context.Background()); err != nil {
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
	if err := k.setUp(); err != nil {
		return unwell(k.desc.Model, k.on, err)
	}
	return nil
}
