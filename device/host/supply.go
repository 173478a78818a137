package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsite/device/sysfs"
)

const (
	// supplyLook is the time between two looks where the kernel tells no change.
	supplyLook = 30 * time.Second
	// supplyPause is the least time between two looks: a file whose driver was unloaded tells changes for ever.
	supplyPause = time.Second
	// supplyQuiet is the time for which the supply is strong enough before that is told: under-voltage comes and goes
	// with the load.
	supplyQuiet = 10 * time.Minute
)

// WatchSupply calls tell(true) when the board finds its supply too weak (under-voltage), and tell(false) when it has
// not for ten minutes, until ctx ends. It returns at once on a machine that cannot tell. root is as for Findings.
func WatchSupply(ctx context.Context, root string, tell func(weak bool)) {
	files := openSupply(root)
	if len(files) == 0 {
		return
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	wait, end := waiter(ctx, files)
	defer end()
	var s supply
	for ctx.Err() == nil {
		if s.look(files, time.Now()) {
			tell(s.weak)
		}
		wait(supplyLook)
	}
}

// openSupply opens the alarm of the kernel's driver (rpi_volt), which forgets what was a few seconds ago, and the
// firmware's word, whose memory that driver clears.
func openSupply(root string) (files []*os.File) {
	paths := sysfs.Root(root).Glob(throttledFile)
	for _, chip := range sysfs.Root(root).Glob("sys/class/hwmon/hwmon*") {
		if sysfs.Text(filepath.Join(chip, "name")) == "rpi_volt" {
			paths = append(paths, filepath.Join(chip, "in0_lcrit_alarm"))
		}
	}
	for _, path := range paths {
		if f, err := os.Open(path); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// supply holds the findings about the supply so far.
type supply struct {
	weak  bool
	last  time.Time // when it was too weak last
	since bool      // the firmware's word said that it has been too weak since the start
}

// look reads the files, and reports whether weak has changed. A file that cannot be read says nothing.
func (s *supply) look(files []*os.File, now time.Time) (changed bool) {
	before, weak := s.weak, false
	for _, f := range files {
		var b [32]byte
		n, _ := f.ReadAt(b[:], 0)
		if strings.HasSuffix(f.Name(), "get_throttled") {
			word, err := throttledWord(b[:n])
			since := err == nil && word>>16&1 != 0
			weak = weak || err == nil && word&1 != 0 || since && !s.since
			if err == nil {
				s.since = since
			}
		} else {
			weak = weak || strings.TrimSpace(string(b[:n])) == "1"
		}
	}
	switch {
	case weak:
		s.weak, s.last = true, now
	case s.weak && now.Sub(s.last) >= supplyQuiet:
		s.weak = false
	}
	return s.weak != before
}
