package devicetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"agentsite/device"
)

// concurrentUse calls all methods concurrently, and Close in between. It ignores results, which
// other rules check: this rule is for the race detector and for deadlocks.
func concurrentUse(ctx context.Context, s subject) error {
	const callers, times = 3, 8
	calls := everyCall(ctx, s)
	err := within(patient, func() error {
		var calling sync.WaitGroup
		for range callers {
			for _, call := range calls {
				calling.Go(func() {
					for range times {
						call()
					}
				})
			}
		}
		calling.Go(func() { s.Close() })
		calling.Wait()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%d callers of each method: %w", callers, err)
	}
	return nil
}

// everyCall lists one call of each method on each point that has it.
func everyCall(ctx context.Context, s subject) []func() {
	calls := []func(){func() { s.Describe() }}
	if sensor, ok := s.Device.(device.Sensor); ok {
		calls = append(calls, func() { sensor.Sample(ctx) })
	}
	if actuator, ok := s.Device.(device.Actuator); ok {
		for _, p := range s.points(device.Kind.Output) {
			calls = append(calls, func() {
				actuator.Apply(ctx, p.Name, away(p))
				actuator.Apply(ctx, p.Name, p.Safe)
			})
		}
	}
	if watcher, ok := s.Device.(device.Watcher); ok {
		calls = append(calls, func() {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			watcher.Watch(ctx, func(device.Reading) {})
		})
	}
	if display, ok := s.Device.(device.Display); ok {
		for _, p := range s.points(is(device.KindText)) {
			calls = append(calls, func() { display.Show(ctx, p.Name, "hello") })
		}
	}
	if camera, ok := s.Device.(device.Camera); ok {
		for _, p := range s.points(is(device.KindImage)) {
			calls = append(calls, func() { camera.Capture(ctx, p.Name) })
		}
	}
	return calls
}
