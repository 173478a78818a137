//lint:file-ignore ST1005 these errors begin with the name of a method

package devicetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsite/device"
)

// watch gives Watch a context that ends, once before the call and once during
// it, and looks at whatever is emitted meanwhile.
func watch(ctx context.Context, s subject) error {
	watcher, ok := s.Device.(device.Watcher)
	if !ok {
		return skip("not a Watcher")
	}
	for _, after := range []time.Duration{0, 50 * time.Millisecond} {
		ending, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		var wrong error
		err := within(after+prompt, func() error {
			return watcher.Watch(ending, func(r device.Reading) {
				wrong = errors.Join(wrong, checkEmitted(s, r))
			})
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("Watch, when its context ended: got %v, want an error that wraps %q", err, context.DeadlineExceeded)
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

func checkEmitted(s subject, r device.Reading) error {
	p, ok := s.Describe().Point(r.Point)
	if !ok {
		return fmt.Errorf("Watch emitted %q, which is not described", r.Point)
	}
	if p.Kind == device.KindText || p.Kind == device.KindImage {
		return fmt.Errorf("Watch emitted %s, which is of kind %s", p.Name, p.Kind)
	}
	if err := checkReading(p, r); err != nil {
		return fmt.Errorf("Watch: %w", err)
	}
	return nil
}
