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
// Effect was confirmed or failed, each for the first time since it left safe. After a failed effect the output may be
// held still.
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
	type trip struct {
		holder            string
		confirmed, failed bool
	}
	trips := make(map[string]trip)
	outputs.Watch(ctx, func(r device.Reading) {
		now, effect := trips[r.Point], guard.Effect(r.Effect)
		n := Note{Output: r.Point, Holder: now.holder}
		switch {
		case now.holder == "": // it may have begun
			now = trip{}
		case r.Holder == "" && r.Cause != "": // without a cause it was asked for
			n.Cause = r.Cause
		case effect == guard.Confirmed && !now.confirmed:
			n.Effect, now.confirmed = effect, true
		case effect == guard.Failed && !now.failed:
			n.Effect, now.failed = effect, true
		}
		now.holder = r.Holder
		trips[r.Point] = now
		if n.Cause == "" && n.Effect == "" {
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
