package devices

import (
	"context"
	"log/slog"
)

// Settle waits until the outputs are known to be safe, for a bounded time, and returns a
// sentence on how they are.
func Settle(ctx context.Context, outputs interface {
	Settle(ctx context.Context, except ...string) error
	Stopped() bool
}) string {
	ctx, cancel := context.WithTimeout(ctx, SettleTimeout)
	defer cancel()
	err := outputs.Settle(ctx)
	if err != nil {
		slog.Error("not every output is known to be safe; moves of those are refused", "err", err)
	}
	stopped := outputs.Stopped()
	if stopped {
		slog.Warn("emergency stop is latched; outputs stay safe until agentsite reset")
	}
	switch {
	case err != nil:
		return "NOT EVERY OUTPUT IS KNOWN TO BE SAFE (the log says which); they are driven there."
	case stopped:
		return "THE EMERGENCY STOP IS LATCHED: outputs stay at their safe values until agentsite reset."
	}
	return "Its outputs are at their safe values."
}
