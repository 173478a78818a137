package memory

import (
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Limit makes Go collect harder from an eighth of the machine's memory on, 64 MB of a
// board's 512, and from most bytes on, unless GOMEMLIMIT is set. The heap grows by half,
// not by itself again, before it is collected, unless GOGC is set.
func Limit(most uint64) {
	var machine unix.Sysinfo_t
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if err := unix.Sysinfo(&machine); err != nil {
		slog.Debug("how much memory there is is not known", "err", err)
		return
	}
	debug.SetMemoryLimit(limit(uint64(machine.Totalram)*uint64(machine.Unit), most))
}

// limit returns Go's limit on a machine with that much memory.
func limit(machine, most uint64) int64 { return int64(min(max(machine/8, 48<<20), most)) }
