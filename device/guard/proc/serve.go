package proc

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

const (
	// silenceTimeout is how long the site may send nothing while an output is away from safe.
	// It sends a heartbeat every heartbeatAway. While all outputs are safe, a guard that hangs
	// does no harm, and heartbeats are rare.
	silenceTimeout = 900 * time.Millisecond
	heartbeatAway  = 250 * time.Millisecond
	heartbeatIdle  = time.Minute
	// maxAge is how old a move may be: one that waited while a process was stopped is out of
	// date.
	maxAge = time.Second
)

// Equipment is what a guard's process has beside the outputs, for Serve.
type Equipment struct {
	Devices map[string]device.Device // that the site reads
	Buttons []Button
	// Follow replaces the plan by another with the same buttons, and returns its devices. When
	// it returns none, nothing has changed; when it returns some, an error names the outputs
	// that were not known to be safe when they were removed.
	Follow func(ctx context.Context, plan []byte) (map[string]device.Device, error)
}

// Serve lets the site at the other end of conn move g's outputs and read the devices,
// until conn or ctx ends. Whoever runs g sees to it that the outputs are safe after
// that. While the site is silent they are safe too, and whenever one of the buttons is
// pressed.
func Serve(ctx context.Context, conn io.ReadWriteCloser, g *guard.Guard, e Equipment) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{
		link: newLink(conn), g: g, follow: e.Follow, buttons: watched(e.Buttons), start: time.Now(), told: make(sequence),
		devices: e.Devices, watches: make(map[string]*deviceWatch), hung: make(map[string]<-chan struct{}),
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer conn.Close()
	defer cancel()
	context.AfterFunc(ctx, func() { conn.Close() })
	s.epoch.Store(rand.Uint32()) // a move that was meant for the guard before is none for this one
	s.released(ctx)              // before anybody asks for a move
	for _, b := range s.buttons {
		all.Go(func() { s.watchButton(ctx, b) })
	}
	g.Recheck()
	if s.send(hello, 0, func(w *writer) { w.uint32(version) }) != nil {
		return nil // the site has gone before it began
	}
	all.Go(func() { s.tell(ctx) })
	all.Go(func() { s.watchSite(ctx) })
	for {
		k, number, body, err := s.next()
		if err == errMessage {
			return err
		}
		if err != nil { // whatever ended it
			return nil
		}
		s.heard.Store(int64(time.Since(s.start)))
		if err := s.handle(ctx, &all, k, number, body); err != nil {
			return err
		}
	}
}

type server struct {
	*link
	g       *guard.Guard
	follow  func(ctx context.Context, plan []byte) (map[string]device.Device, error)
	buttons []*watchedButton
	start   time.Time
	heard   atomic.Int64  // when the site last said something
	epoch   atomic.Uint32 // changes whenever silence ends the leases, and from guard to guard
	told    sequence      // of the site's readings

	stating sync.Mutex      // held while the state is told, so that the newest is the last
	stated  <-chan struct{} // what Changed was then

	planning sync.Mutex // one plan after the other

	asking  sync.Mutex
	devices map[string]device.Device
	watches map[string]*deviceWatch
	hung    map[string]<-chan struct{} // of devices whose driver hung: closed when it has come back
}

// handle begins what a message asks for. An error ends the connection.
func (s *server) handle(ctx context.Context, all *sync.WaitGroup, k kind, number uint32, r reader) error {
	var do func() (reply func(w *writer), err error)
	switch k {
	case beat:
		s.send(beat, number, nil) // if it cannot be sent, there is nothing more to read either
		return nil
	case move, try:
		m := order{epoch: r.uint32(), age: r.duration(), holder: r.text(), output: r.text(), value: r.value(), length: r.duration()}
		do = func() (func(*writer), error) { return s.status(s.move(ctx, m)) }
		if k == try {
			do = func() (func(*writer), error) { return nil, s.try(ctx, m) }
		}
	case release:
		output := r.text()
		do = func() (func(*writer), error) { return s.status(s.g.Release(ctx, output)) }
	case takeOver:
		holder, output := r.text(), r.text()
		do = func() (func(*writer), error) { return nil, s.g.TakeOver(holder, output) }
	case told:
		s.g.Told(s.told.keep(r.reading()))
		return r.end()
	case stop:
		do = func() (func(*writer), error) { return nil, s.g.Stop(ctx) }
	case reset:
		epoch, stops := r.uint32(), r.uint32()
		do = func() (func(*writer), error) { return nil, s.reset(ctx, epoch, stops) }
	case alive:
		do = func() (func(*writer), error) { return nil, s.g.Alive(ctx) }
	case plan:
		text := r.bytes()
		do = func() (func(*writer), error) { return nil, s.change(ctx, text) }
	case sample:
		name := r.text()
		do = func() (func(*writer), error) { return s.sample(ctx, name) }
	case watch:
		name := r.text()
		do = func() (func(*writer), error) { return nil, s.watch(ctx, number, name) }
	case show:
		name, point, text := r.text(), r.text(), r.text()
		do = func() (func(*writer), error) { return nil, s.show(ctx, name, point, text) }
	case capture:
		name, point := r.text(), r.text()
		do = func() (func(*writer), error) { return s.capture(ctx, name, point) }
	default:
		return errMessage
	}
	if err := r.end(); err != nil {
		return err
	}
	all.Go(func() {
		reply, err := do()
		s.state()                                // what the answer has changed is known before the answer is
		s.send(answer, number, func(w *writer) { // an error is the reader's too
			w.fault(err)
			if err == nil && reply != nil {
				reply(w)
			}
		})
	})
	return nil
}

// order is a move as it crosses.
type order struct {
	epoch          uint32
	age            time.Duration
	holder, output string
	value          device.Value
	length         time.Duration
}

var errHeldUp = device.Faultf(device.Expired, "the site was held up, and outputs went to safe meanwhile; look at them and call again")

// permit refuses what is the connection's to refuse.
func (s *server) permit(ctx context.Context, m order) error {
	if m.epoch != s.epoch.Load() || m.age < 0 || m.age > maxAge {
		return errHeldUp
	}
	return s.released(ctx)
}

// try says what move would refuse, and moves nothing.
func (s *server) try(ctx context.Context, m order) error {
	if err := s.permit(ctx, m); err != nil {
		return err
	}
	return s.g.Try(ctx, m.holder, m.output, m.value, m.length)
}

func (s *server) move(ctx context.Context, m order) (guard.Status, error) {
	if err := s.permit(ctx, m); err != nil {
		return guard.Status{}, err
	}
	return s.g.Move(ctx, m.holder, m.output, m.value, m.length)
}

func (s *server) status(now guard.Status, err error) (func(*writer), error) {
	return func(w *writer) { w.status(now) }, err
}

// tell keeps the site informed of every output.
func (s *server) tell(ctx context.Context) {
	for {
		select {
		case <-s.state():
		case <-ctx.Done():
			return
		}
	}
}

// state sends the state of all outputs, unless the site has it already. The channel that it
// returns is closed at the next change.
func (s *server) state() (changed <-chan struct{}) {
	s.stating.Lock()
	defer s.stating.Unlock()
	changed = s.g.Changed()
	if changed == s.stated {
		return changed
	}
	s.stated = changed
	s.send(state, 0, func(w *writer) { // where it cannot be sent, nobody hears the answer either
		all, stopped, stops := s.g.State()
		w.uint32(s.epoch.Load())
		w.bool(stopped)
		w.uint32(stops)
		w.uint32(uint32(len(all)))
		for _, o := range all {
			w.status(o)
		}
	})
	return changed
}

// watchSite ends all leases when the site has fallen silent. It wakes up only
// while an output is away from safe, as the machine says, whoever moved it.
func (s *server) watchSite(ctx context.Context) {
	timer := time.NewTimer(silenceTimeout)
	defer timer.Stop()
	for s.g.Away(ctx) == nil {
		timer.Reset(max(silenceTimeout-s.quiet(), silenceTimeout/9)) // a site that has been idle speaks when it learns of this
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if quiet := s.quiet(); quiet >= silenceTimeout && !s.g.Safe() {
			slog.Error("the site has fallen silent: outputs go to their safe values", "for", quiet)
			s.epoch.Add(1)
			s.g.ToSafe(guard.Silence)
		}
	}
}

// quiet is how long the site has said nothing.
func (s *server) quiet() time.Duration {
	return time.Since(s.start) - time.Duration(s.heard.Load())
}
