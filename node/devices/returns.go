package devices

import (
	"cmp"
	"context"
	"fmt"
	"sync"

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
	outputs.Watch(ctx, func(device.Reading) {
		for _, s := range outputs.Status() {
			why := cmp.Or(s.Why, s.Fault)
			if s.Holder == "" && held[s.Output] && why != "" { // without a why it was asked for
				select {
				case notes <- fmt.Sprintf("%s went to safe: %s", s.Output, why):
				default:
				}
			}
			held[s.Output] = s.Holder != ""
		}
	})
	close(notes)
	<-written
}

// Holder returns a function for the holder of an output and the cause of its last return to safe.
// An output that has had no holder was driven there by the start.
func Holder(outputs *proc.Keeper) func(output string) (holder, cause string) {
	var mu sync.Mutex
	held := make(map[string]bool)
	return func(output string) (holder, cause string) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range outputs.Status() {
			if s.Output != output {
				continue
			}
			if held[output] = held[output] || s.Holder != ""; !held[output] {
				return "", cmp.Or(s.Fault, "the site was started")
			}
			return s.Holder, cmp.Or(s.Why, s.Fault)
		}
		return "", ""
	}
}
