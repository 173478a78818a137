package agent

import (
	"log/slog"
	"runtime/debug"
)

// Defect is the error of an agent that panicked. The log has where.
type Defect struct{ Agent string }

func (d *Defect) Error() string {
	return "a defect of the program ended it; the site's log has where. Report it with those lines"
}

// NewDefect returns the error of a panic, and logs where that was. It is called where the panic is
// recovered.
func NewDefect(self string, panicked any) *Defect {
	slog.Error("a defect: an agent panicked", "agent", self, "panic", panicked, "stack", string(debug.Stack()))
	return &Defect{self}
}

// Recover is deferred where the code of an agent is called. It makes a *Defect of a panic, so that it
// ends that agent alone.
func Recover(self string, err *error) {
	if p := recover(); p != nil {
		*err = NewDefect(self, p)
	}
}
