//go:build !linux

package host

import (
	"context"
	"os"
	"time"

	"agentsite/device"
)

// waiter returns a function that waits until a time is over or ctx ends.
func waiter(ctx context.Context, _ []*os.File) (wait func(time.Duration), end func()) {
	return func(d time.Duration) { device.Sleep(ctx, d) }, func() {}
}
