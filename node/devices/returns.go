package devices

import (
	"context"
	"fmt"

	"agentsite/device"
	"agentsite/device/guard/proc"
)

// maxNotes bounds the notes that wait for the disk.
const maxNotes = 256

// NoteReturns passes each return to safe that no caller requested to note, until ctx ends. note may
// block for the disk: no caller waits for it, although a Watch emits before a call is answered.
// While maxNotes returns wait, further ones are dropped.
func NoteReturns(ctx context.Context, outputs *proc.Keeper, note func(says string) error) {
	notes, written := make(chan string, maxNotes), make(chan struct{})
	go func() {
		defer close(written)
		for says := range notes {
			note(says) // best effort
		}
	}()
	held := make(map[string]bool)
	outputs.Watch(ctx, func(r device.Reading) {
		if r.Holder == "" && held[r.Point] && r.Cause != "" { // without a cause it was asked for
			select {
			case notes <- fmt.Sprintf("%s went to safe: %s", r.Point, r.Cause):
			default:
			}
		}
		held[r.Point] = r.Holder != ""
	})
	close(notes)
	<-written
}
