package proc

import (
	"context"
	"slices"

	"agentsite/device"
)

// change makes the guard use another plan. Watches of replaced devices end.
func (s *server) change(ctx context.Context, plan []byte) error {
	s.planning.Lock()
	defer s.planning.Unlock()
	if s.follow == nil {
		return device.Faultf(device.Internal, "this guard follows one plan only")
	}
	next, err := s.follow(ctx, plan)
	if next == nil {
		return err
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	for name, d := range s.devices {
		if next[name] != d {
			delete(s.hung, d)
			if w := s.watches[name]; w != nil {
				w.end()
			}
		}
	}
	s.devices = next
	return err
}

func (s *server) device(name string) device.Device {
	s.asking.Lock()
	defer s.asking.Unlock()
	return s.devices[name]
}

// asked calls a driver and waits for at most sampleTimeout. A driver that hangs or panics has
// failed. It delays neither the end of this process nor its outputs, and is not called again
// before it returns.
func asked[T any](ctx context.Context, s *server, name string, d device.Device, call func(context.Context) (T, error)) (answer T, err error) {
	s.asking.Lock()
	s.hung[d] = slices.DeleteFunc(s.hung[d], isClosed)
	hangs := len(s.hung[d]) > 0
	if !hangs {
		delete(s.hung, d)
	}
	s.asking.Unlock()
	if hangs {
		return answer, device.Faultf(device.Offline, "the driver of %s hangs and has not come back yet; look at its wiring", name)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	answer, back, err := device.Call(ctx, call)
	s.asking.Lock()
	defer s.asking.Unlock()
	if back != nil && s.devices[name] == d { // else it was replaced meanwhile
		s.hung[d] = append(s.hung[d], back)
	}
	return answer, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sample returns no readings of a device that is not a sensor.
func (s *server) sample(ctx context.Context, name string) (func(*writer), error) {
	d := s.device(name)
	sensor, ok := d.(device.Sensor)
	if !ok {
		return func(w *writer) { w.uint32(0) }, nil
	}
	readings, err := asked(ctx, s, name, d, sensor.Sample)
	s.g.ReadBackEarly()
	return func(w *writer) {
		w.uint32(uint32(len(readings)))
		for _, r := range readings {
			w.reading(r)
		}
	}, err
}

// deviceWatch is one watch of a device.
type deviceWatch struct {
	end   context.CancelFunc
	ended chan struct{}
}

// watch gets its answer when it fails, or when the site starts another one of the same device.
func (s *server) watch(ctx context.Context, number uint32, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mine := &deviceWatch{cancel, make(chan struct{})}
	defer close(mine.ended)
	s.asking.Lock()
	last := s.watches[name]
	s.watches[name] = mine
	w, ok := s.devices[name].(device.Watcher)
	s.asking.Unlock()
	if last != nil { // one watch per device
		last.end()
		<-last.ended
	}
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	_, _, err := device.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, w.Watch(ctx, func(r device.Reading) {
			s.send(reading, number, func(w *writer) { w.reading(r) })
		})
	})
	return err
}

func (s *server) show(ctx context.Context, name, point, text string) error {
	d := s.device(name)
	display, ok := d.(device.Display)
	if !ok {
		return device.Faultf(device.Invalid, "%s shows nothing", name)
	}
	_, err := asked(ctx, s, name, d, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, display.Show(ctx, point, text)
	})
	return err
}

func (s *server) capture(ctx context.Context, name, point string) (func(*writer), error) {
	d := s.device(name)
	camera, ok := d.(device.Camera)
	if !ok {
		return nil, device.Faultf(device.Invalid, "%s takes no pictures", name)
	}
	picture, err := asked(ctx, s, name, d, func(ctx context.Context) (device.Image, error) { return camera.Capture(ctx, point) })
	return func(w *writer) { w.image(picture) }, err
}
