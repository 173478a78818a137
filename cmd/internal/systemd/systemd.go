// Package systemd reports the program's state to the service manager (sd_notify(3)) and feeds
// its watchdog. Without a service manager it does nothing. It imports nothing of ours.
package systemd

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// Supervised reports whether a service manager started this program. That of the package starts it again whenever it
// ends.
func Supervised() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Notify sends a state, such as "READY=1", to the service manager that started this
// program, if one did.
func Notify(state string) {
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
		slog.Warn("service manager notification failed", "state", state, "err", err)
	}
}

// watchdogTimeout returns how long the service manager waits for a sign of life before it
// kills this process, 0 for ever (sd_watchdog_enabled(3)).
func watchdogTimeout() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0 // it is for another process
	}
	n, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// FeedWatchdog sends the service manager the signs of life that it asks for, each after
// alive returned no error, until ctx ends. It returns at once where it asks for none.
func FeedWatchdog(ctx context.Context, alive func(context.Context) error) {
	timeout := watchdogTimeout()
	if timeout == 0 {
		return
	}
	for {
		asking, cancel := context.WithTimeout(ctx, timeout)
		err := alive(asking)
		cancel()
		pause := timeout / 2
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			Notify("WATCHDOG=1")
		default: // a guard that is being replaced answers in a moment
			slog.Error("health check failed; watchdog not fed", "err", err)
			pause = timeout / 20
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
