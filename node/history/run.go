package history

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// runFile begins the name of an empty file. The rest is the number of the newest run.
const runFile = "run-"

// reserve returns the number of a new run, after last and those that have a file. No other run has it, even if this
// one ends before it stores anything: a file keeps it. Where the disk does not take that, some are skipped at random.
func reserve(d disk, names []string, last uint32) uint32 {
	var old []string
	for _, name := range names {
		if digits, ok := strings.CutPrefix(name, runFile); ok {
			old = append(old, name)
			if n, err := strconv.ParseUint(digits, 16, 32); err == nil {
				last = max(last, uint32(n))
			}
		}
	}
	run := last + 1
	f, err := d.Open(fmt.Sprintf("%s%08x", runFile, run), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err == nil {
		err = errors.Join(f.Close(), d.Sync())
	}
	if err != nil {
		return run + rand.Uint32N(1<<16)
	}
	for _, name := range old {
		d.Remove(name) // one that stays is lower
	}
	return run
}
