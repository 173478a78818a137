//go:build unix

package guard

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"agentsite/device"
)

// The same, step by step: the armed file is a pipe, so that the reset waits
// until somebody reads it.
func TestStopWhileResetWaitsForTheDisk(t *testing.T) {
	r := newRig(t, Latch{})
	r.Guard.latch.File = filepath.Join(t.TempDir(), "armed")
	if err := syscall.Mkfifo(r.Guard.latch.File, 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(t)
	if err := r.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.update(func(Time) error { r.m.Reset(); return nil })

	var both sync.WaitGroup
	both.Go(func() {
		wantFault(t, r.Reset(r.asked()), device.Unsafe, "")
	})
	for r.latching.TryLock() {
		r.latching.Unlock()
		runtime.Gosched()
	}
	both.Go(func() {
		if err := r.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for !r.Stopped() { // at once, whatever the disk does
		runtime.Gosched()
	}
	if _, err := os.ReadFile(r.Guard.latch.File); err != nil {
		t.Error(err)
	}
	both.Wait()
	refuses(t, r)
	if r.Guard.latch.Armed() {
		t.Error("a restart would forget the stop")
	}
	r.stopped(t)
}
