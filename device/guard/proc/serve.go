package proc

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

const (
	// silence is how long the site may say nothing while an output is away from safe.
	// It says something every beatHeld. While all is safe, a guard that hangs does no
	// harm, and it is asked when it is needed; both sleep.
	silence  = 900 * time.Millisecond
	beatHeld = 250 * time.Millisecond
	beatIdle = time.Minute
	// maxAge is how old a move may be: one that waited while a process was stopped is
	// nobody's wish any more.
	maxAge = time.Second
)

// Serve lets the site at the other end of conn move g's outputs and read the devices,
// until conn or ctx ends. Whoever runs g sees to it that the outputs are safe after
// that. While the site is silent they are safe too, and whenever one of the buttons is
// pressed. The warning is told to the site.
func Serve(ctx context.Context, conn io.ReadWriteCloser, g *guard.Guard, devices map[string]device.Device, buttons []Button, warning string) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{link: link{conn: conn}, g: g, devices: devices, buttons: buttons, start: time.Now(), held: make(chan struct{}, 1), deaf: make(map[string]<-chan struct{})}
	var all sync.WaitGroup
	defer all.Wait()
	defer conn.Close()
	defer cancel()
	context.AfterFunc(ctx, func() { conn.Close() })
	s.released(ctx) // before anybody asks for a move
	for _, b := range buttons {
		all.Go(func() { s.mindButton(ctx, b) })
	}
	if s.send(hello, 0, func(w *writer) { w.uint32(version); w.text(warning) }) != nil {
		return nil // the site has gone before it began
	}
	all.Go(func() { s.tell(ctx) })
	all.Go(func() { s.mindSilence(ctx) })
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
	link
	g       *guard.Guard
	devices map[string]device.Device
	buttons []Button
	start   time.Time
	heard   atomic.Int64  // when the site last said something
	epoch   atomic.Uint32 // how often silence has ended the leases
	held    chan struct{} // an output may be away from safe

	asking sync.Mutex
	deaf   map[string]<-chan struct{} // of devices whose driver hung: closed when it has come back
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
		s.g.Told(r.reading())
		return r.end()
	case stop:
		do = func() (func(*writer), error) { return nil, s.g.Stop(ctx) }
	case reset:
		do = func() (func(*writer), error) { return nil, s.reset(ctx) }
	case alive:
		do = func() (func(*writer), error) { return nil, s.g.Alive(ctx) }
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

// permit refuses what is the connection's to refuse.
func (s *server) permit(ctx context.Context, m order) error {
	if m.epoch != s.epoch.Load() || m.age < 0 || m.age > maxAge {
		return device.Faultf(device.Expired, "the site was held up, and outputs went to safe meanwhile; look at them and call again")
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
	select {
	case s.held <- struct{}{}:
	default:
	}
	return s.g.Move(ctx, m.holder, m.output, m.value, m.length)
}

func (s *server) status(now guard.Status, err error) (func(*writer), error) {
	return func(w *writer) { w.status(now) }, err
}

// asked has a driver do something within sampleTimeout. One that hangs or panics has
// failed: it holds up neither the end of this process nor its outputs. It is not asked
// again before it has come back.
func asked[T any](ctx context.Context, s *server, name string, call func(context.Context) (T, error)) (answer T, err error) {
	s.asking.Lock()
	back := s.deaf[name]
	s.asking.Unlock()
	if back != nil {
		select {
		case <-back:
		default:
			return answer, device.Faultf(device.Offline, "the driver of %s hangs and has not come back yet; look at its wiring", name)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	answer, back, err = device.Ask(ctx, call)
	s.asking.Lock()
	s.deaf[name] = back
	s.asking.Unlock()
	return answer, err
}

// sample has no readings of a device that is not asked.
func (s *server) sample(ctx context.Context, name string) (func(*writer), error) {
	sensor, ok := s.devices[name].(device.Sensor)
	if !ok {
		return func(w *writer) { w.uint32(0) }, nil
	}
	readings, err := asked(ctx, s, name, sensor.Sample)
	return func(w *writer) {
		w.uint32(uint32(len(readings)))
		for _, r := range readings {
			w.reading(r)
		}
	}, err
}

// watch is answered when it breaks.
func (s *server) watch(ctx context.Context, number uint32, name string) error {
	w, ok := s.devices[name].(device.Watcher)
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	_, _, err := device.Ask(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Watch(ctx, func(r device.Reading) {
			s.send(reading, number, func(w *writer) { w.reading(r) })
		})
	})
	return err
}

func (s *server) show(ctx context.Context, name, point, text string) error {
	display, ok := s.devices[name].(device.Display)
	if !ok {
		return device.Faultf(device.Invalid, "%s shows nothing", name)
	}
	_, err := asked(ctx, s, name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, display.Show(ctx, point, text)
	})
	return err
}

func (s *server) capture(ctx context.Context, name, point string) (func(*writer), error) {
	camera, ok := s.devices[name].(device.Camera)
	if !ok {
		return nil, device.Faultf(device.Invalid, "%s takes no pictures", name)
	}
	picture, err := asked(ctx, s, name, func(ctx context.Context) (device.Image, error) { return camera.Capture(ctx, point) })
	return func(w *writer) { w.image(picture) }, err
}

// tell keeps the site informed of every output.
func (s *server) tell(ctx context.Context) {
	s.g.Follow(ctx, func(all []guard.Status, stopped bool) {
		s.send(state, 0, func(w *writer) {
			w.uint32(s.epoch.Load())
			w.bool(stopped)
			w.uint32(uint32(len(all)))
			for _, o := range all {
				w.status(o)
			}
		})
	})
}

// mindSilence ends all leases when the site has fallen silent. It wakes up only
// while an output is away from safe.
func (s *server) mindSilence(ctx context.Context) {
	tick := time.NewTicker(silence / 9)
	defer tick.Stop()
	for {
		tick.Stop()
		select {
		case <-ctx.Done():
			return
		case <-s.held:
		}
		tick.Reset(silence / 9)
		for !s.g.Safe() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if quiet := time.Since(s.start) - time.Duration(s.heard.Load()); quiet > silence {
				slog.Error("the site has fallen silent: outputs go to their safe values", "for", quiet)
				s.epoch.Add(1)
				s.g.ToSafe()
				break
			}
		}
	}
}
