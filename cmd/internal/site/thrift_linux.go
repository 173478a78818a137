package site

import (
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The memory that Go may use before it collects harder: an eighth of the machine's, within
// these bounds. GOMEMLIMIT says otherwise.
const leastMemory, mostMemory = 48 << 20, 512 << 20

// beThrifty has the program leave the machine's memory to others, too: a board of 512 MB
// gives it 64. The heap grows by half before it is collected, not by itself again. GOGC
// says otherwise.
func beThrifty() {
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
	debug.SetMemoryLimit(memoryFor(uint64(machine.Totalram) * uint64(machine.Unit)))
}

func memoryFor(machine uint64) int64 {
	return int64(min(max(machine/8, leastMemory), mostMemory))
}
