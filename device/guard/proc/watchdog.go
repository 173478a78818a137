package proc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"
)

// watchdogTime is the longest timeout of a Raspberry Pi's watchdog.
const watchdogTime = 15 * time.Second

// Watchdog is the board's watchdog, which reboots the board unless it is fed. It runs from
// OpenWatchdog on, also after the end of the process, until Close with orderly set.
type Watchdog struct {
	file *os.File
	time time.Duration
}

// OpenWatchdog starts the watchdog at path, such as /dev/watchdog.
func OpenWatchdog(path string) (*Watchdog, error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return nil, fmt.Errorf("the watchdog is in use, mostly by systemd: set RuntimeWatchdogSec=off in its system.conf, or remove site.watchdog: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the watchdog cannot be opened: see that it is there and that the site's user may write to it, or remove site.watchdog: %w", err)
	}
	took, err := setTimeout(f, watchdogTime)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the watchdog %s does not take %v: %w", path, watchdogTime, err)
	}
	return &Watchdog{f, took}, nil
}

// Feed feeds the watchdog three times per timeout, if alive returns no error, until ctx ends.
func (w *Watchdog) Feed(ctx context.Context, alive func(context.Context) error) {
	every := w.time / 3
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, every)
		err := alive(asking)
		cancel()
		if err == nil {
			_, err = w.file.Write([]byte{0})
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			slog.Error("the watchdog is not fed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
	}
}

// Close stops the watchdog if the end is orderly. Otherwise the board reboots, unless a process
// opens the watchdog in time.
func (w *Watchdog) Close(orderly bool) error {
	var err error
	if orderly {
		_, err = w.file.Write([]byte("V")) // the magic close character of its kernel driver
	}
	return errors.Join(err, w.file.Close())
}
