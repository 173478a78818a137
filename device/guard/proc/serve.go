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
	// silenceTimeout is the longest time without a message of the site while an output is away
	// from safe. The site sends a heartbeat every heartbeatAway. While all outputs are safe, a
	// hanging guard does no harm, and heartbeats are rare.
	silenceTimeout = 900 * time.Millisecond
	heartbeatAway  = 250 * time.Millisecond
	heartbeatIdle  = time.Minute
	// maxAge is the maximum age of a move: a move that waited while a process was stopped is
	// outdated.
	maxAge = time.Second
)

// Equipment holds the parameters of Serve beside the guard.
type Equipment struct {
	Devices map[string]device.Device // that the site reads
	Buttons []Button
	// Follow replaces the plan by another with the same buttons, and returns its devices. If it
	// returns none, nothing has changed. If it returns some, an error names the outputs that
	// were not confirmed as safe when they were removed.
	Follow func(ctx context.Context, plan []byte) (map[string]device.Device, error)
}

// Serve lets the site at the other end of conn move g's outputs and read the devices, until
// conn or ctx ends. Then the caller, which runs g, drives the outputs to safe. They also go to
// safe while the site is silent, and when a button is pressed.
func Serve(ctx context.Context, conn io.ReadWriteCloser, g *guard.Guard, e Equipment) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{
		link: newLink(conn), g: g, follow: e.Follow, buttons: watched(e.Buttons), start: time.Now(), told: make(sequence),
		devices: e.Devices, watches: make(map[string]*deviceWatch), hung: make(map[device.Device][]<-chan struct{}),
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer conn.Close()
	defer cancel()
	context.AfterFunc(ctx, func() { conn.Close() })
	s.epoch.Store(rand.Uint32())            // a move for an earlier guard is refused
	s.run = int64(1+rand.IntN(1<<20)) << 32 // exact in JSON's doubles
	s.released(ctx)                         // before the first move
	for _, b := range s.buttons {
		all.Go(func() { s.watchButton(ctx, b) })
	}
	g.Recheck()
	if s.send(hello, 0, func(w *writer) { w.uint32(version) }) != nil {
		return nil // the site has already disconnected
	}
	all.Go(func() { s.tell(ctx) })
	all.Go(func() { s.watchSite(ctx) })
	for {
		k, number, body, err := s.next()
		if err == errMessage {
			return err
		}
		if err != nil { // whatever the reason
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
	heard   atomic.Int64  // time of the site's last message
	epoch   atomic.Uint32 // changes when silence ends the leases, and with each guard
	run     int64         // upper half of guard.Status.State, with each guard
	told    sequence      // of the site's readings

	stating sync.Mutex      // held while the state is sent, so that the newest is sent last
	stated  <-chan struct{} // Changed at that time

	planning sync.Mutex // one change at a time

	asking  sync.Mutex
	devices map[string]device.Device
	watches map[string]*deviceWatch
	hung    map[device.Device][]<-chan struct{} // calls whose driver hung: closed when it has returned
}

// handle starts the request of a message. An error ends the connection.
func (s *server) handle(ctx context.Context, all *sync.WaitGroup, k kind, number uint32, r reader) error {
	var do func() (reply func(w *writer), err error)
	switch k {
	case beat:
		s.send(beat, number, nil) // after a failure, reading also fails
		return nil
	case move, moveOver, renew, try:
		m := order{epoch: r.uint32(), age: r.duration(), holder: r.text(), output: r.text(), value: r.value(), length: r.duration()}
		do = func() (func(*writer), error) { return s.status(s.move(ctx, m, s.g.Move)) }
		switch k {
		case moveOver:
			from := r.text()
			do = func() (func(*writer), error) {
				return s.status(s.move(ctx, m, func(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error) {
					return s.g.MoveOver(ctx, holder, from, output, v, length)
				}))
			}
		case renew:
			do = func() (func(*writer), error) { return s.status(s.move(ctx, m, s.g.Renew)) }
		case try:
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
	case simulate:
		name, says := r.text(), r.reading()
		do = func() (func(*writer), error) { return nil, s.simulate(ctx, name, says) }
	default:
		return errMessage
	}
	if err := r.end(); err != nil {
		return err
	}
	all.Go(func() {
		reply, err := do()
		s.state()                                // the state precedes the answer
		s.send(answer, number, func(w *writer) { // after an error the reader also fails
			w.fault(err)
			if err == nil && reply != nil {
				reply(w)
			}
		})
	})
	return nil
}

// order is a decoded move request.
type order struct {
	epoch          uint32
	age            time.Duration
	holder, output string
	value          device.Value
	length         time.Duration
}

var errHeldUp = device.Faultf(device.Expired, "the site was held up, and outputs went to safe meanwhile; look at them and call again")

// permit refuses outdated moves and moves for an earlier guard.
func (s *server) permit(ctx context.Context, m order) error {
	if m.epoch != s.epoch.Load() || m.age < 0 || m.age > maxAge {
		return errHeldUp
	}
	return s.released(ctx)
}

// try returns the fault that move would return, and moves nothing.
func (s *server) try(ctx context.Context, m order) error {
	if err := s.permit(ctx, m); err != nil {
		return err
	}
	return s.g.Try(ctx, m.holder, m.output, m.value, m.length)
}

// move makes an order by Guard.Move or Guard.Renew.
func (s *server) move(ctx context.Context, m order, by func(ctx context.Context, holder, output string, v device.Value, length time.Duration) (guard.Status, error)) (guard.Status, error) {
	if err := s.permit(ctx, m); err != nil {
		return guard.Status{}, err
	}
	return by(ctx, m.holder, m.output, m.value, m.length)
}

func (s *server) status(now guard.Status, err error) (func(*writer), error) {
	now.State += s.run
	return func(w *writer) { w.status(now) }, err
}

// tell sends the state of the outputs at each change.
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
	s.send(state, 0, func(w *writer) { // after a failure, the answer fails, too
		all, stopped, stops := s.g.State()
		w.uint32(s.epoch.Load())
		w.bool(stopped)
		w.uint32(stops)
		w.uint32(uint32(len(all)))
		for _, o := range all {
			o.State += s.run
			w.status(o)
		}
	})
	return changed
}

// watchSite ends all leases when the site is silent. It wakes up only while an output is away
// from safe.
func (s *server) watchSite(ctx context.Context) {
	timer := time.NewTimer(silenceTimeout)
	defer timer.Stop()
	for s.g.Away(ctx) == nil {
		timer.Reset(max(silenceTimeout-s.quiet(), silenceTimeout/9)) // an idle site sends heartbeats once it gets this state
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

// quiet returns the time since the site's last message.
func (s *server) quiet() time.Duration {
	return time.Since(s.start) - time.Duration(s.heard.Load())
}
