package board

import (
	"context"
	"fmt"
	"os"
	"time"
)

// chips is where lines come from: the kernel's, or a test's.
type chips interface {
	// list returns what there is, without taking any of it. An error means that
	// nothing is known.
	list() ([]chip, error)
	// request takes lines of one chip for the caller alone and configures them in
	// the same step, so that an output never has a value that nobody asked for.
	request(chip string, offsets []int, c setup) (lines, error)
	// pulses makes the calling thread, which has to be locked, as punctual as it
	// may be, and returns how it waits a few milliseconds.
	pulses() (hold func(time.Duration))
}

// chip is one GPIO controller.
type chip struct {
	name  string // gpiochip0
	label string // pinctrl-bcm2835
	lines []lineInfo
}

type lineInfo struct {
	name     string // "" where the kernel has none
	used     bool
	consumer string // who uses it, where that is known
}

// consumer is what others see as the user of our lines.
var consumer = consumerOf(os.Getpid())

const consumerPrefix = "agentsite-"

func consumerOf(pid int) string { return fmt.Sprintf("%s%d", consumerPrefix, pid) }

// setup is how lines are configured. Values are bits, one for each line in the
// order of the request, and logical: after activeLow.
type setup struct {
	output    bool
	values    uint64 // of outputs
	activeLow bool
	drive     Drive
	pull      Pull
	edges     bool // report both
	debounce  time.Duration
}

// lines are requested. Their methods return the errors of the kernel as they are.
// They are safe for concurrent use, but for watch, which one at a time may call.
type lines interface {
	get() (uint64, error)
	set(values uint64) error
	// watch emits edges in their order until ctx ends, and then returns ctx's
	// error; any other error means that there will be no more. It begins with
	// those that the kernel has kept since the last watch.
	watch(ctx context.Context, emit func(Edge)) error
	// close releases the lines. What becomes of an output's level is the
	// kernel's affair: see Line.Close.
	close() error
}
