package site

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// notify tells the service manager, where one has started this program, such as
// "READY=1" (sd_notify(3)).
func notify(state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"}) // "@" is for an abstract one
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		slog.Warn("the service manager cannot be told", "what", state, "err", err)
	}
}

// managerPatience is how long the service manager waits for a sign of life before it kills
// this process; 0 is for ever (sd_watchdog_enabled(3)).
func managerPatience() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0 // it means another one
	}
	n, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// reassure gives the service manager its signs of life, as long as alive has no error,
// until ctx ends.
func reassure(ctx context.Context, patience time.Duration, alive func(context.Context) error) {
	if patience == 0 {
		return
	}
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := alive(asking)
		cancel()
		pause := patience / 2
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			notify("WATCHDOG=1")
		default: // a guard that is being replaced is there in a moment
			slog.Error("the guard does not answer; the service manager is not told that all is well", "err", err)
			pause = patience / 20
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
