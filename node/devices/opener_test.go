package devices

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/node/config"
)

// TestBadDevices: a failed device does not affect the others, and is used as soon as it
// works.
func TestBadDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := device.Faultf(device.Busy, "p3 is in use by another program")
		twice := device.Faultf(device.Invalid, "there are two thermometers; write which")
		b := &bay{away: map[string]error{"p1": taken, "p3": taken, "p4": twice, "p5": errors.New("its memory is worn out")}}
		r := newRig(t, b, threeOf+"  cellar: { driver: probe, pin: p4 }\n  attic: { driver: probe, pin: p5 }\n  den: { driver: probe, pin: p6 }\n")
		defer r.end()
		r.says(t, "site_status", `{}`, "{Device:soil Model:probe Faults:[p3 is in use by another program]}", "{Device:cellar Model:probe Faults:[there are two thermometers",
			"{Device:attic Model:probe Faults:[its memory is worn out]}", "{Device:den Model:a probe Faults:[]}", "pump/on")
		r.says(t, "read_points", readAll, "Point:den/t Value:2", "Point:lamp/on Value:off", "Point:pump/on Value:-")
		r.says(t, "switch_output", lampOn, "Value:on")
		r.says(t, "switch_output", pumpOn, "offline")
		b.change(func() { clear(b.away) })
		time.Sleep(openRetryMax)
		r.says(t, "read_points", readAll, "Point:soil/t Value:2", "Point:cellar/t Value:2", "Point:attic/t Value:2", "Point:pump/on Value:off")
		r.says(t, "switch_output", pumpOn, "Value:on")
	})
}

// TestHangingOpen: a driver that hangs in Open is not called again before it returns, through
// a day of retries and a reload, and delays only its own device.
func TestHangingOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{hangs: map[string]chan struct{}{"p3": make(chan struct{}), "p4": make(chan struct{})}}
		begun := time.Now()
		r := newRig(t, b, threeOf+"  cellar: { driver: probe, pin: p4 }\n")
		defer r.end()
		if took := time.Since(begun); took > 20*time.Second+openTimeout+time.Second { // rests for 20 s
			t.Errorf("two that hang held up the start for %v", took)
		}
		r.says(t, "site_status", `{}`, "{Device:soil Model:probe Faults:[no response within 10s", "{Device:cellar Model:probe Faults:[no response within 10s")
		r.says(t, "switch_output", lampOn, "Value:on")
		goroutines := runtime.NumGoroutine()
		calls := func(want int) {
			t.Helper()
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.hung) != want {
				t.Errorf("drivers that hang were called %d times, want %d: %v", len(b.hung), want, b.hung)
			}
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		calls(2)
		r.text += "  den: { driver: probe, pin: p6 }\n"
		reloading := time.Now()
		if err := r.Reload(t.Context()); err != nil || time.Since(reloading) > time.Second {
			t.Errorf("%v after %v", err, time.Since(reloading))
		}
		r.text = strings.Replace(r.text, "pin: p3, unit: K", "pin: p3, unit: mV", 1)
		if err := r.Reload(t.Context()); device.AsFault(err).Kind != device.Offline || time.Since(reloading) > time.Second {
			t.Errorf("%v after %v", err, time.Since(reloading))
		}
		calls(2)
		if n := runtime.NumGoroutine(); n > goroutines+10 { // den has some
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		b.change(func() {
			for _, c := range b.hangs {
				close(c)
			}
			clear(b.hangs)
		})
		time.Sleep(openRetryMax)
		r.says(t, "read_points", readAll, "Point:soil/t Value:2 Unit:mV", "Point:cellar/t Value:2", "Point:den/t Value:2")
	})
}

// TestOpeningEnds: a site that ends while a driver hangs does not wait for it, and leaves no
// device open.
func TestOpeningEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		b := &bay{hangs: map[string]chan struct{}{"p3": hang}, owned: map[string]bool{}}
		cfg, err := config.Parse("test", []byte(head+"  soil: { driver: probe, pin: p3 }\n  den: { driver: probe, pin: p4 }\n"), b.drivers())
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), 3*time.Second)
		defer end()
		begun := time.Now()
		if all, err := openDevices(ctx, cfg, boardtest.Lines(), newOpener(nil)); !errors.Is(err, context.DeadlineExceeded) || all != nil {
			t.Errorf("%v, %v", all, err)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		close(hang)
		synctest.Wait()
		if b.owned["p3"] || b.owned["p4"] || b.wrong != nil {
			t.Errorf("open: %v, %v", b.owned, b.wrong)
		}
	})
}
