package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// listen makes this test the service manager and returns what it is told next.
func listen(t *testing.T) (next func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows has no Unix datagram sockets, and no systemd")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name)
	return func() string {
		b := make([]byte, 100)
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := conn.Read(b)
		if err != nil {
			t.Error(err)
		}
		return string(b[:n])
	}
}

func TestNotify(t *testing.T) {
	next := listen(t)
	Notify("READY=1\nSTATUS=fine")
	if got := next(); got != "READY=1\nSTATUS=fine" {
		t.Errorf("%q", got)
	}
}

// TestFeedWatchdog: no sign of life is sent before the check has passed, and a failed check
// is repeated soon.
func TestFeedWatchdog(t *testing.T) {
	next := listen(t)
	t.Setenv("WATCHDOG_USEC", "1000000")
	ctx, cancel := context.WithCancel(t.Context())
	checks, ended := 0, make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(ended)
		FeedWatchdog(ctx, func(context.Context) error {
			if checks++; checks < 3 {
				return errors.New("not yet")
			}
			return nil
		})
	}()
	if got := next(); got != "WATCHDOG=1" {
		t.Errorf("%q", got)
	}
	cancel()
	<-ended
	if took := time.Since(begun); checks != 3 || took < 2*time.Second/20 {
		t.Errorf("fed after %d checks in %v", checks, took)
	}
}

// TestOtherWatchdog: a watchdog that is off, or of another process, is not fed.
func TestOtherWatchdog(t *testing.T) {
	for _, env := range [][2]string{{"", ""}, {"0", ""}, {"x", ""}, {"1000000", "1"}} {
		t.Setenv("WATCHDOG_USEC", env[0])
		t.Setenv("WATCHDOG_PID", env[1])
		FeedWatchdog(t.Context(), func(context.Context) error { t.Error(env); return nil })
	}
}
