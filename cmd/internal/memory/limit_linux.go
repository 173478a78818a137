package memory

import (
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Limit sets Go's soft memory limit, unless GOMEMLIMIT is set. It is an eighth of the machine's
// memory (64 MB of 512 MB), at least 48 MB and at most maximum bytes. It sets GOGC to 50 unless
// GOGC is set.
func Limit(maximum uint64) {
	var machine unix.Sysinfo_t
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if err := unix.Sysinfo(&machine); err != nil {
		slog.Debug("no memory limit set", "err", err)
		return
	}
	debug.SetMemoryLimit(limit(uint64(machine.Totalram)*uint64(machine.Unit), maximum))
}

// limit returns Go's memory limit on a machine with that many bytes of memory.
func limit(machine, maximum uint64) int64 { return int64(min(max(machine/8, 48<<20), maximum)) }
