package proc

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// Replace ends the guard, which drives its outputs to safe, calls swap, and starts a guard of
// the outputs with these policies. It blocks until swap has been called; if swap fails, the
// outputs stay the same. The error names the outputs that are not confirmed as safe, or is
// swap's. Run must be running.
func (k *Keeper) Replace(ctx context.Context, policies []guard.Policy, swap func() error) error {
	next := replacement{policies, swap, make(chan error, 1)}
	select {
	case k.replace <- next:
		return <-next.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Alive blocks until the guard's loop responds, or without outputs Run's loop. The error is
// ctx's, or that there is no guard.
func (k *Keeper) Alive(ctx context.Context) error {
	if k.drives() {
		return k.ask(ctx, alive, nil, call{})
	}
	select {
	case k.idle <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pid returns the process ID of the guard, or of the last one; 0 for none.
func (k *Keeper) Pid() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pid
}

// Stopped reports whether the emergency stop is latched.
func (k *Keeper) Stopped() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stopped
}

// Policy returns the policy of an output.
func (k *Keeper) Policy(output string) (guard.Policy, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.policies[output]
	if !ok {
		return p, device.Faultf(device.Invalid, "there is no output %.60q", output)
	}
	return p, nil
}

// Status reports every output, in the order of the configuration.
func (k *Keeper) Status() []guard.Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.statuses)
	for i := range all {
		k.age(&all[i])
	}
	return all
}

// StatusOf reports one output; ok is false where there is none of that name.
func (k *Keeper) StatusOf(output string) (s guard.Status, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.statuses, func(s guard.Status) bool { return s.Output == output })
	if i < 0 {
		return s, false
	}
	s = k.statuses[i]
	k.age(&s)
	return s, true
}

// age takes off the time since the guard told. The caller holds mu.
func (k *Keeper) age(s *guard.Status) {
	old := time.Since(k.at)
	s.Left, s.Rest = max(0, s.Left-old), max(0, s.Rest-old)
	s.SetAge, s.MeasuredAge = s.SetAge+old, s.MeasuredAge+old
	if !s.Safe || s.Holder != "" { // its limits run; an output at safe recovers, which only the guard knows
		s.Spare, s.MaxOn, s.Duty = max(0, s.Spare-old), max(0, s.MaxOn-old), max(0, s.Duty-old)
	}
}

// Changed returns a channel that is closed at the next change of Status or Stopped, except for
// running times.
func (k *Keeper) Changed() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

// Settle blocks until every output without a lease, but for those of except, is confirmed at its safe
// value, or ctx ends. Then an UnknownOutcome fault names the others.
func (k *Keeper) Settle(ctx context.Context, except ...string) error {
	for {
		k.mu.Lock()
		changed := k.changed
		var late, names []string
		for _, s := range k.statuses {
			if !s.Safe && s.Holder == "" && !slices.Contains(except, s.Output) {
				late = append(late, strings.TrimSuffix(s.Output+" is not known to be safe: "+s.Fault, ": "))
				names = append(names, s.Output)
			}
		}
		k.mu.Unlock()
		if late == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return device.Faultf(device.UnknownOutcome, "%s", strings.Join(late, "; ")).
				Naming("not every output is known to be safe yet", names...)
		}
	}
}

// Told is Guard.Told of the running guard. Without one, the reading is lost; a hanging guard
// blocks Told until it is killed.
func (k *Keeper) Told(r device.Reading) {
	k.mu.Lock()
	l := k.link
	required := k.required[r.Point]
	k.mu.Unlock()
	if required && l != nil {
		l.send(told, 0, func(w *writer) { w.reading(r) })
	}
}

// Watch first emits a reading of every output, with its full address. Until ctx ends, it then emits
// a reading at each change of an output's value, holder or effect. A reading has the holder and the
// cause that the output had together with its value. The changes of a Move, TakeOver,
// Release, Stop or Reset are emitted before it returns, in its caller's goroutine.
func (k *Keeper) Watch(ctx context.Context, emit func(device.Reading)) error {
	w := &watching{emit: emit, last: make(map[string]guard.Status)}
	k.mu.Lock()
	k.watching[w] = struct{}{}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.watching, w)
		k.mu.Unlock()
		w.end()
	}()
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		w.flush(k)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watching is one Watch.
type watching struct {
	mu   sync.Mutex           // held while it emits: readings come in order
	emit func(device.Reading) // nil when it has ended
	last map[string]guard.Status
}

// flush emits the changes since its last call.
func (w *watching) flush(k *Keeper) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.emit == nil {
		return
	}
	var readings []device.Reading
	k.mu.Lock()
	for _, s := range k.statuses {
		before, told := w.last[s.Output]
		there := s.Value == s.Goal && (s.Holder != before.Holder || s.Effect != before.Effect)
		if !told || s.Value != before.Value || s.Fault != before.Fault || there {
			readings = append(readings, k.reading(s))
		}
		w.last[s.Output] = s
	}
	k.mu.Unlock()
	for _, r := range readings {
		w.emit(r)
	}
}

// reading returns a status as a reading. An output that has had no holder since the site was started
// was driven to safe by that start, whatever the guard's process says of its own. The caller holds mu.
func (k *Keeper) reading(s guard.Status) device.Reading {
	r := s.Reading()
	if !k.held[s.Output] {
		r.Cause = cmp.Or(s.Fault, "the site was started")
	}
	return r
}

func (w *watching) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.emit = nil
}

// flush makes every Watch emit its changes.
func (k *Keeper) flush() {
	k.mu.Lock()
	all := slices.Collect(maps.Keys(k.watching))
	k.mu.Unlock()
	for _, w := range all {
		w.flush(k)
	}
}

// Device returns a device of the guard's process, with that description, for the site to read.
// Only the keeper moves its outputs.
func (k *Keeper) Device(name string, desc device.Description) device.Device {
	r := remote{k, name, desc}
	has := func(kinds ...device.Kind) bool {
		return slices.ContainsFunc(desc.Points, func(p device.Point) bool { return slices.Contains(kinds, p.Kind) })
	}
	asked, speaks := has(device.KindMeasurement, device.KindState), has(device.KindEvent, device.KindState)
	switch {
	case asked && speaks:
		return remoteBoth{remoteSensor{r}, remoteWatcher{r}}
	case asked:
		return remoteSensor{r}
	case speaks:
		return remoteWatcher{r}
	}
	return r
}

type remote struct {
	k    *Keeper
	name string
	desc device.Description
}

type (
	remoteSensor  struct{ remote }
	remoteWatcher struct{ remote }
	remoteBoth    struct {
		remoteSensor
		watcher remoteWatcher
	}
)

func (r remote) Describe() device.Description { return r.desc }

// Close does nothing: the guard's process owns the device.
func (r remote) Close() error { return nil }

// wait blocks until there is a guard, for at most a second: replacing one takes a moment, which
// is not a fault.
func (k *Keeper) wait(ctx context.Context) error {
	var patience <-chan time.Time
	for {
		k.mu.Lock()
		there, changed := k.link != nil, k.changed
		k.mu.Unlock()
		if there {
			return nil
		}
		if patience == nil {
			patience = time.After(time.Second)
		}
		select {
		case <-patience:
			return errAway
		case <-changed:
		case <-ctx.Done():
			return errAway
		}
	}
}

// Show and Capture are for devices with displays and cameras beside their outputs.
func (r remote) Show(ctx context.Context, point, text string) error {
	return r.k.ask(ctx, show, func(w *writer) { w.text(r.name); w.text(point); w.text(text) }, call{})
}

func (r remote) Capture(ctx context.Context, point string) (picture device.Image, err error) {
	read := func(in *reader) { picture = in.image() }
	err = r.k.ask(ctx, capture, func(w *writer) { w.text(r.name); w.text(point) }, call{read: read})
	return picture, err
}

func (r remoteSensor) Sample(ctx context.Context) (all []device.Reading, err error) {
	if err := r.k.wait(ctx); err != nil {
		return nil, err
	}
	err = r.k.ask(ctx, sample, func(w *writer) { w.text(r.name) }, call{read: func(in *reader) {
		for range in.uint32() {
			if in.err != nil {
				return
			}
			all = append(all, in.reading())
		}
	}})
	return all, err
}

func (r remoteBoth) Watch(ctx context.Context, emit func(device.Reading)) error {
	return r.watcher.Watch(ctx, emit)
}

func (r remoteWatcher) Watch(ctx context.Context, emit func(device.Reading)) error {
	for {
		err := r.k.ask(ctx, watch, func(w *writer) { w.text(r.name) }, call{reading: emit, told: make(sequence)})
		if !errors.Is(err, errLost) || r.k.wait(ctx) != nil {
			return err
		}
	}
}
