package devices

import (
	"context"
	"fmt"

	"agentsite/device"
	"agentsite/device/guard/proc"
)

// maxNotes bounds the notes that wait for the disk.
const maxNotes = 256

// Return is a return of an output to safe that no caller requested.
type Return struct{ Output, Holder, Cause string }

func (r Return) String() string { return fmt.Sprintf("%s went to safe: %s", r.Output, r.Cause) }

// NoteReturns passes each return to safe that no caller requested to note, until ctx ends. note may
// block for the disk: no caller waits for it, although a Watch emits before a call is answered.
// While maxNotes returns wait, further ones are dropped.
func NoteReturns(ctx context.Context, outputs *proc.Keeper, note func(Return)) {
	notes, written := make(chan Return, maxNotes), make(chan struct{})
	go func() {
		defer close(written)
		for r := range notes {
			note(r) // best effort
		}
	}()
	held := make(map[string]string)
	outputs.Watch(ctx, func(r device.Reading) {
		if holder := held[r.Point]; r.Holder == "" && holder != "" && r.Cause != "" { // without a cause it was asked for
			select {
			case notes <- Return{r.Point, holder, r.Cause}:
			default:
			}
		}
		held[r.Point] = r.Holder
	})
	close(notes)
	<-written
}
