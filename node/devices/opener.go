package devices

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// openTimeout bounds the opening of one device.
const openTimeout = 10 * time.Second

// opener opens devices, with one call at a time for each configuration of one: it does not call a
// hanging driver again before that returns.
type opener struct {
	outputs *proc.Keeper

	mu   sync.Mutex
	busy []config.Device // while they are being opened
}

func newOpener(outputs *proc.Keeper) *opener {
	return &opener{outputs: outputs}
}

// open opens devices concurrently, so that a hanging one does not delay the others. It
// returns each device or its error.
func (o *opener) open(ctx context.Context, devices []config.Device) ([]*instance, []error) {
	all, errs := make([]*instance, len(devices)), make([]error, len(devices))
	var opening sync.WaitGroup
	for i, d := range devices {
		opening.Go(func() { all[i], errs[i] = o.openOne(ctx, d) })
	}
	opening.Wait()
	return all, errs
}

func (o *opener) openOne(ctx context.Context, d config.Device) (*instance, error) {
	if belongsToGuard(d) {
		return configure(d, o.outputs.Device(d.Name, d.Config.(driver.Describer).Describe()))
	}
	dev, err := o.call(ctx, d)
	if err != nil {
		return nil, d.Errorf("", "driver", "%s: %w", d.Name, device.AsFault(err))
	}
	is, err := configure(d, dev)
	if err != nil {
		return nil, errors.Join(err, closeDevices([]*instance{{Device: d, device: dev}}))
	}
	return is, nil
}

// call calls the driver, unless its last call has not returned.
func (o *opener) call(ctx context.Context, d config.Device) (device.Device, error) {
	hangs := device.Faultf(device.Offline, "no response within %v; check its wiring", openTimeout)
	if !o.begin(d) {
		return nil, hangs
	}
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	dev, _, err := device.Call(opening, func(ctx context.Context) (device.Device, error) {
		defer o.end(d)
		dev, err := driver.Open(ctx, d.Config)
		if err == nil && ctx.Err() != nil { // the caller no longer waits
			return nil, errors.Join(ctx.Err(), dev.Close())
		}
		return dev, err
	})
	if err != nil && opening.Err() != nil {
		return nil, hangs
	}
	return dev, err
}

// begin reports whether no call for a device with that driver and keys is under way, and notes one.
func (o *opener) begin(d config.Device) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.ContainsFunc(o.busy, d.SameDriver) {
		return false
	}
	o.busy = append(o.busy, d)
	return true
}

func (o *opener) end(d config.Device) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = slices.DeleteFunc(o.busy, d.SameDriver)
}
