package devices

import (
	"context"
	"log/slog"

	"agentsite/device/guard"
)

// Releaser has the methods of the guard that ReleaseRevoked uses.
type Releaser interface {
	Status() []guard.Status
	Release(ctx context.Context, output string) (guard.Status, error)
}

// ReleaseRevoked sends each output to safe whose holder may not hold it any more, and then
// passes it to note. It does not wait until they are there.
func ReleaseRevoked(ctx context.Context, outputs Releaser, mayHold func(holder, output string) bool, note func(output string)) {
	for _, s := range outputs.Status() {
		if mayHold(s.Holder, s.Output) {
			continue
		}
		go func() {
			slog.Info("permission ended; output goes to safe", "output", s.Output, "holder", s.Holder)
			if _, err := outputs.Release(ctx, s.Output); err != nil {
				slog.Error("output is not known to be safe after its holder's permission ended", "output", s.Output, "err", err)
			}
			note(s.Output)
		}()
	}
}
