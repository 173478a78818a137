package site

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard/proc"
	"agentsite/node/config"
)

// openTimeout bounds the opening of one device.
const openTimeout = 10 * time.Second

// opener opens devices, each by one call at a time: a driver that hangs is not called
// again before it has come back.
type opener struct {
	keeper *proc.Keeper

	mu   sync.Mutex
	busy map[string]bool // devices, while they are being opened
}

func newOpener(k *proc.Keeper) *opener { return &opener{keeper: k, busy: make(map[string]bool)} }

// open opens devices side by side, so that one that hangs holds up no other. It returns
// one or why not of each.
func (o *opener) open(ctx context.Context, devices []config.Device) ([]*wired, []error) {
	all, errs := make([]*wired, len(devices)), make([]error, len(devices))
	var opening sync.WaitGroup
	for i, d := range devices {
		opening.Go(func() { all[i], errs[i] = o.openOne(ctx, d) })
	}
	opening.Wait()
	return all, errs
}

func (o *opener) openOne(ctx context.Context, d config.Device) (*wired, error) {
	if guarded(d) {
		return wire(d, o.keeper.Device(d.Name, d.Config.(driver.Describer).Describe()))
	}
	dev, err := o.call(ctx, d)
	if err != nil {
		return nil, d.Errorf("", "driver", "%s: %w", d.Name, device.AsFault(err))
	}
	w, err := wire(d, dev)
	if err != nil {
		return nil, errors.Join(err, closeDevices([]*wired{{Device: d, device: dev}}))
	}
	return w, nil
}

// call calls the driver, unless the last call has not come back.
func (o *opener) call(ctx context.Context, d config.Device) (device.Device, error) {
	hangs := device.Faultf(device.Offline, "it has not answered within %v; look at its wiring", openTimeout)
	if !o.begin(d.Name) {
		return nil, hangs
	}
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	dev, _, err := device.Ask(opening, func(ctx context.Context) (device.Device, error) {
		defer o.end(d.Name)
		dev, err := d.Config.Open(ctx)
		if err == nil && ctx.Err() != nil { // nobody waits for it any more
			return nil, errors.Join(ctx.Err(), dev.Close())
		}
		return dev, err
	})
	if err != nil && opening.Err() != nil {
		return nil, hangs
	}
	return dev, err
}

func (o *opener) begin(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	free := !o.busy[name]
	o.busy[name] = true
	return free
}

func (o *opener) end(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.busy, name)
}
