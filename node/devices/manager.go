package devices

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/guard/proc"
	"agentsite/node"
	"agentsite/node/config"
)

// SettleTimeout is how long a start or a reload waits for outputs to be known safe.
const SettleTimeout = 5 * time.Second

const (
	// The back-off of opening missing devices doubles from openRetry to openRetryMax.
	openRetry    = time.Second
	openRetryMax = 5 * time.Minute
	// sampleEndTimeout bounds the wait for the end of a sample.
	sampleEndTimeout = 5 * time.Second
)

// Options configure a Manager.
type Options struct {
	Board       *board.Board                 // all devices of this process are on it
	Config      *config.Site                 // as it was read for this start
	Read        func() (*config.Site, error) // reads it again
	Plan        Plan                         // of Config, as the guard follows it
	Files       GuardFiles
	Outputs     *proc.Keeper
	Hub         *node.Hub                            // gets the samples
	KeepHistory func(points map[string]device.Point) // records these points and no others
}

// Manager manages a site's devices. They change in Run's goroutine only.
type Manager struct {
	Options              // with the newest configuration and its plan
	devices  []*instance // in the file's order
	opener   *opener
	install  func() error             // replaces the current plan by the staged one
	reloaded func(*config.Site) error // takes up the agents of a new configuration; nil for nothing
	taken    *config.Site             // the last configuration that reloaded applied
	offer    func([]node.Device) error
	requests chan request  // unbuffered
	ended    chan struct{} // closed when Run returns
}

// Open opens the site's devices, except the guard's, concurrently and for openTimeout at
// most. A device that cannot be opened is missing and tried again by Run. The error is a
// mistake in the configuration, or ctx's; then no device is left open.
func Open(ctx context.Context, o Options) (*Manager, error) {
	m := &Manager{Options: o, opener: newOpener(o.Outputs), install: o.Files.install, requests: make(chan request), ended: make(chan struct{})}
	var err error
	m.devices, err = openDevices(ctx, o.Config, o.Board, m.opener)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close closes all devices. It is called after Run has returned, and blocks for a little more
// than closeTimeout at most.
func (m *Manager) Close() error { return closeDevices(m.devices) }

// Publish passes the devices to offer, now and whenever they change. It is called once,
// before Run.
func (m *Manager) Publish(offer func([]node.Device) error) error {
	m.offer = offer
	return m.publish()
}

// Configure passes the configuration to take, now and whenever a reload finds other agents in
// it, or other devices, which agents may name. It is called once, before Run.
func (m *Manager) Configure(take func(*config.Site) error) error {
	m.reloaded, m.taken = take, m.Config
	return take(m.Config)
}

// Run samples the devices, retries those that are missing and reloads, until ctx ends. It
// closes none at the end.
func (m *Manager) Run(ctx context.Context) {
	defer close(m.ended)
	for _, d := range m.devices {
		m.sample(ctx, d)
	}
	pause := openRetry
	retry := time.NewTimer(pause)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			var sampling sync.WaitGroup
			for _, d := range m.devices {
				sampling.Go(d.stop)
			}
			sampling.Wait()
			return
		case q := <-m.requests:
			q.answer <- q.do(ctx)
			if !q.changes {
				continue // missing devices are tried when they would have been
			}
			pause = openRetry
		case <-retry.C:
			pause = min(2*pause, openRetryMax)
			if m.openMissing(ctx) {
				pause = openRetry
			}
		}
		retry.Stop()
		if m.anyMissing() {
			retry.Reset(pause)
		}
	}
}

func (m *Manager) sample(ctx context.Context, d *instance) {
	sampling, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	source := d.source()
	go func() {
		defer close(ended)
		m.Hub.Sample(sampling, []node.Source{source})
	}()
	d.stop = func() {
		cancel()
		timeout := time.NewTimer(sampleEndTimeout)
		defer timeout.Stop()
		select {
		case <-ended:
		case <-timeout.C:
			slog.Error("driver hangs in Sample; abandoned", "device", d.Name)
		}
	}
}

// remove takes a device out of use.
func (m *Manager) remove(d *instance) error {
	d.stop()
	points := d.addresses(func(k device.Kind) bool { return !k.Output() }) // the keeper reports those of outputs
	m.Hub.Forget(points...)
	for _, p := range points { // no output may depend on a removed point
		m.Outputs.Told(device.Reading{Point: p, Quality: device.Bad, Why: "its configuration was changed", At: time.Now()})
	}
	if d.missing != nil {
		return nil
	}
	return closeDevices([]*instance{d})
}

// publish passes the devices to offer.
func (m *Manager) publish() error {
	m.KeepHistory(points(m.devices))
	var all []node.Device
	for _, d := range m.devices {
		all = append(all, d.published())
	}
	return m.offer(all)
}

func (m *Manager) anyMissing() bool {
	for _, d := range m.devices {
		if d.missing != nil {
			return true
		}
	}
	return false
}

// openMissing tries to open each missing device once more, and reports whether anything
// has changed.
func (m *Manager) openMissing(ctx context.Context) (changed bool) {
	var opened []*instance
	var missing []config.Device
	for _, d := range m.devices {
		if d.missing != nil {
			missing = append(missing, d.Device)
		}
	}
	all, errs := m.opener.open(ctx, missing)
	if ctx.Err() != nil { // the site ends
		closeDevices(slices.DeleteFunc(all, func(d *instance) bool { return d == nil }))
		return false
	}
	for i, now := range all {
		at := slices.IndexFunc(m.devices, func(d *instance) bool { return d.Name == missing[i].Name })
		d := m.devices[at]
		switch {
		case errs[i] == nil:
			slog.Info("missing device opened", "device", d.Name)
		case device.AsFault(errs[i]).Error() == d.missing.Error():
			continue
		default: // the reason has changed
			now = newPlaceholder(d.Device, errs[i])
		}
		m.remove(d)
		m.devices[at] = now
		opened = append(opened, now)
	}
	if opened == nil {
		return false
	}
	if err := m.publish(); err != nil {
		slog.Error("publishing the devices failed", "err", err)
	}
	for _, d := range opened { // after publish, which creates their history
		m.sample(ctx, d)
	}
	return true
}
