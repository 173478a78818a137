package devices

import (
	"context"
	"fmt"
	"sync"

	"agentsite/device"
	"agentsite/device/guard/proc"
)

// maxNotes bounds the notes that wait for the disk.
const maxNotes = 256

// Return is a return of an output to safe that no caller requested.
type Return struct{ Output, Holder, Cause string }

func (r Return) String() string { return fmt.Sprintf("%s went to safe: %s", r.Output, r.Cause) }

// NoteReturns passes each return to safe that no caller requested to all notes, until ctx ends. A note may
// block for the disk: no caller waits for it, although a Watch emits before a call is answered, and no other note.
// While maxNotes returns wait for one, further ones are dropped.
func NoteReturns(ctx context.Context, outputs *proc.Keeper, notes ...func(Return)) {
	queues := make([]chan Return, len(notes))
	var working sync.WaitGroup
	for i, note := range notes {
		queues[i] = make(chan Return, maxNotes)
		working.Go(func() {
			for r := range queues[i] {
				note(r) // best effort
			}
		})
	}
	held := make(map[string]string)
	outputs.Watch(ctx, func(r device.Reading) {
		if holder := held[r.Point]; r.Holder == "" && holder != "" && r.Cause != "" { // without a cause it was asked for
			for _, q := range queues {
				select {
				case q <- Return{r.Point, holder, r.Cause}:
				default:
				}
			}
		}
		held[r.Point] = r.Holder
	})
	for _, q := range queues {
		close(q)
	}
	working.Wait()
}
