package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

func TestStopIsImmediateAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "bob", vent, device.Number(45), 0)
		r.move(t, "cid", valve, off, Unlimited)
		r.move(t, "dee", pump, on, 0)
		start := time.Now()
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		since(t, start, 0)
		r.allSafe(t)
		if _, err := os.Stat(r.latch.File); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the armed file: %v", err)
		}
		if _, err := os.Stat(r.latch.Flag); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the flag is for read-only disks: %v", err)
		}
		refuses(t, r)
		if err := r.Stop(t.Context()); err != nil {
			t.Errorf("a second stop: %v", err)
		}
		if _, err := r.Release(t.Context(), heater); err != nil {
			t.Errorf("a release while stopped: %v", err)
		}
		r.stopped(t)

		r2 := newRig(t, r.latch) // after a restart
		r2.run(t)
		time.Sleep(time.Hour)
		refuses(t, r2)
		r2.allSafe(t)
		if err := r2.Reset(r2.asked()); err != nil {
			t.Fatal(err)
		}
		if r2.Stopped() || !r2.latch.Armed() {
			t.Error("a reset does not arm")
		}
		time.Sleep(time.Hour)
		r2.allSafe(t) // nothing comes back by itself
		r2.move(t, "ann", heater, on, 0)
		r2.stopped(t)

		r3 := newRig(t, r.latch)
		if r3.Stopped() {
			t.Error("the reset was forgotten")
		}
	})
}

func refuses(t *testing.T, r *rig) {
	t.Helper()
	if !r.Stopped() {
		t.Error("it is not stopped")
	}
	_, err := r.Move(t.Context(), "ann", heater, on, 0)
	wantFault(t, err, device.Unsafe, "emergency stop", "agentsite reset")
}

// A disk that cannot forget a file, for root too: it is a folder that is not empty.
func stubborn(t *testing.T, file string) {
	t.Helper()
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "stone"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err == nil {
		t.Fatal("the file can be removed after all")
	}
}

func TestStopOnReadOnlyDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		stubborn(t, r.latch.File)
		r.move(t, "ann", heater, on, 0)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.allSafe(t)
		if _, err := os.Stat(r.latch.Flag); err != nil {
			t.Errorf("the flag: %v", err)
		}
		r.stopped(t)

		r = newRig(t, r.latch)
		r.run(t)
		time.Sleep(time.Hour)
		refuses(t, r)

		// A reset that fails resets nothing, over a restart either.
		stubborn(t, r.latch.Flag)
		wantFault(t, r.Reset(r.asked()), device.Unavailable, "stays")
		refuses(t, r)
		if !newRig(t, r.latch).Stopped() {
			t.Error("a failed reset would be a reset after a restart")
		}

		// The disk has the armed file, and only the flag goes.
		if err := errors.Join(os.RemoveAll(r.latch.Flag), r.latch.raise(), r.Reset(r.asked())); err != nil {
			t.Fatal(err)
		}
		r.move(t, "ann", heater, on, 0)
		if newRig(t, r.latch).Stopped() {
			t.Error("the reset was forgotten")
		}
		r.stopped(t)
	})
}

func TestStopThatARestartForgets(t *testing.T) {
	for _, flag := range []string{"", "under a file"} {
		t.Run("flag "+flag, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := ready(t)
				r.latch.Flag = ""
				if flag != "" {
					file := filepath.Join(t.TempDir(), "file")
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						t.Fatal(err)
					}
					r.latch.Flag = filepath.Join(file, "stopped")
				}
				r.Guard.latch = r.latch
				if err := os.Remove(r.latch.File); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(r.latch.File, "stone"), 0o700); err != nil {
					t.Fatal(err)
				}
				r.move(t, "ann", heater, on, 0)
				err := r.Stop(t.Context())
				if err == nil || !strings.Contains(err.Error(), "a restart would forget") {
					t.Errorf("Stop: %v", err)
				}
				r.allSafe(t)
				refuses(t, r)
				r.stopped(t)
			})
		})
	}
}

// A missing or unreadable data folder means stopped.
func TestLatchWhenInDoubt(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]Latch{
		"no file":           {File: filepath.Join(dir, "armed")},
		"no folder":         {File: filepath.Join(dir, "gone", "armed"), Flag: filepath.Join(dir, "gone", "stopped")},
		"no file at all":    {},
		"unreadable file":   {File: filepath.Join(file, "armed")},
		"unreadable flag":   {File: file, Flag: filepath.Join(file, "stopped")},
		"a flag and a file": {File: file, Flag: dir},
	} {
		if l.Armed() {
			t.Errorf("%s: armed", name)
		}
	}
	l := Latch{File: filepath.Join(dir, "gone", "armed")}
	if err := l.Stop(); err == nil || !strings.Contains(err.Error(), "would forget it") {
		t.Errorf("a stop that nothing remembers: %v", err)
	}
	if err := l.Reset(); err == nil {
		t.Error("a reset without a folder says that it worked")
	}
}

// A stop outlives the folder that it is kept in: where that is gone, and where it
// is there again without what was in it.
func TestStopOutlivesTheFolder(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "made again": true} {
		for place, flag := range map[string]string{"elsewhere": "run/stopped", "in the folder": "data/stopped"} {
			t.Run(name+", the flag "+place, func(t *testing.T) {
				dir := t.TempDir()
				data := filepath.Join(dir, "data")
				l := Latch{File: filepath.Join(data, "armed"), Flag: filepath.Join(dir, flag)}
				mkdir := func() {
					if err := os.MkdirAll(data, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				mkdir()
				if err := l.Arm(); err != nil || !l.Armed() {
					t.Fatal(err)
				}
				if err := os.RemoveAll(data); err != nil {
					t.Fatal(err)
				}
				if again {
					mkdir()
				}
				if err := l.Stop(); err != nil {
					t.Fatal(err)
				}
				mkdir()
				if err := l.Arm(); err != nil || l.Armed() { // a first start, as far as it can see
					t.Errorf("a restart forgets the stop, %v", err)
				}
				if err := l.Reset(); err != nil || !l.Armed() {
					t.Errorf("the owner's reset: %v", err)
				}
			})
		}
	}
}

func TestStopSaysWhatIsNotSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "ann", pump, on, 0)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		start := time.Now()
		err := r.Stop(within(t, 3*time.Second))
		since(t, start, 3*time.Second)
		wantFault(t, err, device.UnknownOutcome, pump)
		if strings.Contains(err.Error(), heater) {
			t.Errorf("the heater is safe, but: %v", err)
		}
		if calls := r.room.told(); !calls[len(calls)-1].when.Equal(start) {
			t.Errorf("the heater waited for the pump: %v", calls)
		}
		if r.latch.Armed() {
			t.Error("the latch waited for the pump")
		}
		r.pump.set(func() { r.pump.hangs = nil })
		r.stopped(t)
	})
}

// Callers are shown one fault, so it says all.
func TestStopSaysItInOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := ready(t)
		r.move(t, "ann", heater, on, 0)
		r.move(t, "ann", pump, on, 0)
		r.pump.set(func() { r.pump.hangs = map[string]bool{"pump": true} })
		r.room.set(func() { r.room.hangs = map[string]bool{"heater": true} })
		r.Guard.latch = Latch{File: filepath.Join(t.TempDir(), "gone", "armed")}
		wantFault(t, r.Stop(within(t, 3*time.Second)), device.UnknownOutcome, pump, heater, "would forget it")
		r.pump.set(func() { r.pump.hangs = nil })
		r.room.set(func() { r.room.hangs = nil })
		if err := r.Settle(t.Context()); err != nil {
			t.Error(err)
		}
		wantFault(t, r.Stop(t.Context()), device.Unavailable, "would forget it")
		r.stopped(t)
	})
}

// TestStartWhileStopped: a latched emergency stop keeps nothing from safe, and everything
// there.
func TestStartWhileStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Latch{File: filepath.Join(t.TempDir(), "armed")})
		r.run(t)
		if err := r.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.allSafe(t)
		time.Sleep(time.Minute)
		refuses(t, r)
		r.stopped(t)
	})
}

// The emergency stop wins over a reset that it overlaps with: once it has
// returned, moves are refused and a restart remembers.
func TestStopDuringReset(t *testing.T) {
	for range 200 {
		r := newRig(t, Latch{File: filepath.Join(t.TempDir(), "armed")})
		r.run(t)
		var both sync.WaitGroup
		both.Go(func() { _ = r.Reset(r.asked()) })
		both.Go(func() { _ = r.Stop(t.Context()) })
		both.Wait()
		if !r.Stopped() && !r.latch.Armed() {
			t.Fatal("outputs may move, though a restart would refuse")
		}
		if r.Stopped() && r.latch.Armed() {
			t.Fatal("outputs are stopped, though a restart would forget")
		}
		r.stopped(t)
	}
}
