package board

import (
	"context"
	"fmt"
	"os"
	"time"
)

// GPIO is where a Board gets its lines from: the kernel, or a fake of boardtest.
type GPIO interface {
	// Chips lists the controllers and requests no line. An error means that nothing is
	// known.
	Chips() ([]Chip, error)
	// Request takes lines of one chip for the caller alone and configures them in the
	// same step, so that an output never has another value.
	Request(chip string, offsets []int, c LineConfig) (Lines, error)
	// PrepareThread minimises the timing jitter of the calling thread, which has to be locked, and
	// returns a sleep of a few milliseconds for it.
	PrepareThread() (sleep func(time.Duration))
}

// Chip is one GPIO controller.
type Chip struct {
	Name  string // gpiochip0
	Label string // pinctrl-bcm2835
	Lines []LineInfo
}

// LineInfo is the kernel's information about a line.
type LineInfo struct {
	Name     string // "" where the kernel has none
	Used     bool
	Consumer string // the user of the line, where that is known
}

// consumer is the name of our lines' user in the kernel.
var consumer = consumerOf(os.Getpid())

const consumerPrefix = "agentsite-"

func consumerOf(pid int) string { return fmt.Sprintf("%s%d", consumerPrefix, pid) }

// LineConfig is how lines are requested. Values are bits, one for each line in the
// order of the request, and logical: after ActiveLow.
type LineConfig struct {
	Consumer  string
	Output    bool
	Values    uint64 // of outputs
	ActiveLow bool
	Drive     Drive
	Pull      Pull
	Edges     bool // report both
	Debounce  time.Duration
}

// Lines are requested lines. Their methods return the errors of the kernel as they are.
// They are safe for concurrent use, except that only one Watch may run at a time.
type Lines interface {
	Get() (uint64, error)
	Set(values uint64) error
	// Watch emits edges in their order until ctx ends, and then returns ctx's
	// error; any other error means that there will be no more. It begins with
	// those that the kernel has kept since the last Watch.
	Watch(ctx context.Context, emit func(Edge)) error
	// Close releases the lines. The level of a released output depends on the kernel: see
	// Line.Close.
	Close() error
}
