package devices

import (
	"context"
	"fmt"
	"sync"

	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/device/guard/proc"
)

// maxNotes bounds the notes that wait for the disk.
const maxNotes = 256

// Note is something that happened to a held output without a caller: its return to safe, for a Cause, or that its
// Effect was confirmed or failed. After a failed effect the output may be held still.
type Note struct {
	Output, Holder, Cause string
	Effect                guard.Effect
}

func (n Note) String() string {
	if n.Cause != "" {
		return fmt.Sprintf("%s went to safe: %s", n.Output, n.Cause)
	}
	return fmt.Sprintf("the effect of %s: %s", n.Output, n.Effect)
}

// NoteOutputs passes what happens to outputs without a caller to all notes, until ctx ends. A note may block for the
// disk: no caller waits for it, although a Watch emits before a call is answered, and no other note. While maxNotes
// wait for one, further ones are dropped.
func NoteOutputs(ctx context.Context, outputs *proc.Keeper, notes ...func(Note)) {
	queues := make([]chan Note, len(notes))
	var working sync.WaitGroup
	for i, note := range notes {
		queues[i] = make(chan Note, maxNotes)
		working.Go(func() {
			for n := range queues[i] {
				note(n) // best effort
			}
		})
	}
	last := make(map[string]device.Reading)
	outputs.Watch(ctx, func(r device.Reading) {
		before := last[r.Point]
		last[r.Point] = r
		if before.Holder == "" {
			return
		}
		n := Note{Output: r.Point, Holder: before.Holder}
		switch effect := guard.Effect(r.Effect); {
		case r.Holder == "" && r.Cause != "": // without a cause it was asked for
			n.Cause = r.Cause
		case r.Effect != before.Effect && (effect == guard.Confirmed || effect == guard.Failed):
			n.Effect = effect
		default:
			return
		}
		for _, q := range queues {
			select {
			case q <- n:
			default:
			}
		}
	})
	for _, q := range queues {
		close(q)
	}
	working.Wait()
}
