package memory

import (
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// Release gives back what only the start needed: its garbage, and the program's own pages.
// A start touches nearly every page of the program, and a site at rest a third of
// them. Those come back from the page cache when they are run; the others no longer
// count as used, and are the first to go where memory is short.
func Release() {
	debug.FreeOSMemory()
	if err := unmapIdle(); err != nil {
		slog.Debug("the program's pages stay resident", "err", err)
	}
}

// unmapIdle unmaps the program's read-only pages.
func unmapIdle() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var may string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &may); err != nil {
			return err
		}
		if !strings.HasSuffix(line, " "+self+"\n") || strings.Contains(may, "w") {
			continue
		}
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); failed != 0 {
			return failed
		}
	}
	return nil
}
