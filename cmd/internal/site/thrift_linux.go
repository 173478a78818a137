package site

import (
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// beThrifty has the program leave the machine's memory to others, too: Go collects harder
// from an eighth of it on, 64 MB of a board's 512, and from most bytes on. GOMEMLIMIT says
// otherwise. The heap grows by half before it is collected, not by itself again. GOGC says
// otherwise.
func beThrifty(most uint64) {
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
	debug.SetMemoryLimit(memoryFor(uint64(machine.Totalram)*uint64(machine.Unit), most))
}

func memoryFor(machine, most uint64) int64 { return int64(min(max(machine/8, 48<<20), most)) }
