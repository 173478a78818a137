package peer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestRaceDelayed: an attempt that is delayed wins only where the others are slower than its
// delay, as a link-local address does.
func TestRaceDelayed(t *testing.T) {
	for other, want := range map[time.Duration]string{200 * time.Millisecond: "global", time.Second: "link-local"} {
		synctest.Test(t, func(t *testing.T) {
			got, err := race(t.Context(), time.Minute, func(string) {}, []attempt[string]{func(ctx context.Context, add func(attempt[string])) (string, error) {
				add(func(ctx context.Context, _ func(attempt[string])) (string, error) {
					device.Sleep(ctx, fallbackDelay)
					return "link-local", ctx.Err()
				})
				add(func(ctx context.Context, _ func(attempt[string])) (string, error) {
					device.Sleep(ctx, other)
					return "global", ctx.Err()
				})
				<-ctx.Done()
				return "", ctx.Err()
			}})
			if got != want || err != nil {
				t.Errorf("the other takes %v: %q won, %v", other, got, err)
			}
		})
	}
	for address, want := range map[string]bool{"[fe80::1%eth0]:8474": true, "169.254.3.4:8474": true, "10.77.0.1:8474": false, "[fd77::1]:8474": false, "shed.local:8474": false} {
		if isLinkLocal(address) != want {
			t.Error(address)
		}
	}
}
