package site

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/history"
)

const (
	// A device that is missing is opened again after a second, then after twice as
	// long and so on.
	openRetry    = time.Second
	openRetryMax = 5 * time.Minute
	// stopPatience bounds the wait for a driver that is to end a sample.
	stopPatience = 5 * time.Second
)

// wiring is the site's devices while they come and go. All of that happens in Run's
// goroutine, one thing after the other.
type wiring struct {
	board   *board.Board                 // that all devices of this process are on
	read    func() (*config.Site, error) // the configuration, as it is now
	cfg     *config.Site                 // as it was read last
	devices []*wired                     // in the file's order
	keeper  *proc.Keeper
	opens   *opener
	plan    plan
	stage   func(text []byte) error // leaves a plan where install finds it
	install func() error            // puts it in the place of the old one
	past    *history.History
	hub     *node.Hub
	offer   func([]things.Thing) error // to those who call
	reloads chan chan<- error          // unbuffered
}

// Run samples the devices, and opens those that are missing once they are there,
// until ctx ends. It closes none at the end.
func (w *wiring) Run(ctx context.Context) {
	for _, d := range w.devices {
		w.sample(ctx, d)
	}
	pause := openRetry
	retry := time.NewTimer(pause)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			var sampling sync.WaitGroup
			for _, d := range w.devices {
				sampling.Go(d.stop)
			}
			sampling.Wait()
			return
		case answer := <-w.reloads:
			answer <- w.reload(ctx)
			pause = openRetry
		case <-retry.C:
			pause = min(2*pause, openRetryMax)
			if w.openMissing(ctx) {
				pause = openRetry
			}
		}
		retry.Stop()
		if w.anyMissing() {
			retry.Reset(pause)
		}
	}
}

func (w *wiring) sample(ctx context.Context, d *wired) {
	sampling, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	source := d.source()
	go func() {
		defer close(ended)
		w.hub.Sample(sampling, []node.Source{source})
	}()
	d.stop = func() {
		cancel()
		patience := time.NewTimer(stopPatience)
		defer patience.Stop()
		select {
		case <-ended:
		case <-patience.C:
			slog.Error("a driver does not end its sample and is left behind", "device", d.Name)
		}
	}
}

// remove takes a device out of use.
func (w *wiring) remove(d *wired) error {
	d.stop()
	points := d.addresses(func(k device.Kind) bool { return !k.Output() }) // of outputs the keeper tells
	w.hub.Forget(points...)
	for _, p := range points { // no output is moved by leave of what is no longer there
		w.keeper.Told(device.Reading{Point: p, Quality: device.Bad, Why: "its configuration was changed", At: time.Now()})
	}
	if d.missing != nil {
		return nil
	}
	return closeDevices([]*wired{d})
}

// publish offers what there is now.
func (w *wiring) publish() error {
	w.past.Keep(measured(w.devices))
	var all []things.Thing
	for _, d := range w.devices {
		all = append(all, d.thing())
	}
	return w.offer(all)
}

func (w *wiring) anyMissing() bool {
	for _, d := range w.devices {
		if d.missing != nil {
			return true
		}
	}
	return false
}

// openMissing tries each device that is missing once more, and reports whether
// anything is different now.
func (w *wiring) openMissing(ctx context.Context) (changed bool) {
	var opened []*wired
	var missing []config.Device
	for _, d := range w.devices {
		if d.missing != nil {
			missing = append(missing, d.Device)
		}
	}
	all, errs := w.opens.open(ctx, missing)
	if ctx.Err() != nil { // nothing is missing: the site ends
		closeDevices(slices.DeleteFunc(all, func(d *wired) bool { return d == nil }))
		return false
	}
	for i, now := range all {
		at := slices.IndexFunc(w.devices, func(d *wired) bool { return d.Name == missing[i].Name })
		d := w.devices[at]
		switch {
		case errs[i] == nil:
			slog.Info("a device that was missing is there", "device", d.Name)
		case device.AsFault(errs[i]).Error() == d.missing.Error():
			continue
		default: // for another reason now
			now = standIn(d.Device, errs[i])
		}
		w.remove(d)
		w.devices[at] = now
		opened = append(opened, now)
	}
	if opened == nil {
		return false
	}
	if err := w.publish(); err != nil {
		slog.Error("what there is now cannot be offered", "err", err)
	}
	for _, d := range opened { // once its readings are kept
		w.sample(ctx, d)
	}
	return true
}
