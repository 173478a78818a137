package devices

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

var errNobody = device.Faultf(device.Offline, "nothing answers at p1")

// TestMissing: the site starts with a missing device. Its points are faults, its outputs are
// refused, and it is used automatically once it can be opened.
func TestMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nothing := device.Faultf(device.Offline, "nothing answers at p3")
		b := &bay{away: map[string]error{"p1": errNobody, "p3": nothing}}
		r := newRig(t, b, threeOf)
		defer r.end()
		// The pump's points are known without hardware, soil's are not.
		r.says(t, "read_points", readAll, "Point:pump/on Value:-", "Quality:fault Why:nothing answers at p1", "Point:lamp/on Value:off")
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[on: fault nothing answers at p1]}", "{Device:lamp Model:a relay Faults:[]}",
			"{Device:soil Model:probe Faults:[nothing answers at p3]}")
		r.says(t, "switch_output", pumpOn, "offline", "nothing answers at p1")
		r.says(t, "switch_output", lampOn, "Value:on")
		r.says(t, "list_points", `{}`, "Point:pump/on Kind:switch")
		r.told()

		time.Sleep(time.Hour)
		b.change(func() { delete(b.away, "p1"); delete(b.away, "p3") })
		time.Sleep(openRetryMax)
		synctest.Wait()
		got := strings.Split(r.told(), ", ")
		slices.Sort(got) // the guard works beside
		if want := []string{"open p1", "open p3", "p1 off", "p2 off"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		r.says(t, "read_points", readAll, "Point:pump/on Value:off", "Point:soil/t Value:2 Unit:K")
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[]}", "{Device:soil Model:a probe Faults:[]}")
		time.Sleep(guard.DefaultRest)
		r.says(t, "switch_output", pumpOn, "Value:on")
	})
}

// TestMissingAfterReload: a missing device's reason is the newest one.
func TestMissingAfterReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{}
		r := newRig(t, b, twoParts)
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		b.change(func() { b.away["p4"] = errNobody; b.stuck["p2"] = true })
		r.text = head + "  pump: { driver: relay, pin: p4 }\n"
		err := r.Reload(t.Context())
		if err == nil || device.AsFault(err).Kind != device.Offline ||
			!strings.Contains(err.Error(), "lamp/on ") || !strings.Contains(err.Error(), "it is stuck") ||
			!strings.Contains(err.Error(), "pump/on ") || !strings.Contains(err.Error(), " p1") {
			t.Error(err)
		}
		b.change(func() { b.away["p4"] = errors.New("the bus is gone") })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.says(t, "site_status", `{}`, "{Device:pump Model:a relay Faults:[on: fault the bus is gone]}")
		r.says(t, "read_points", readAll, "Why:the bus is gone")
	})
}

// TestOpeningIsTriedLessOften: the back-off doubles from a second to five minutes.
func TestOpeningIsTriedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bay{away: map[string]error{"p1": errNobody}}
		r := newRig(t, b, "  soil: { driver: probe, pin: p1 }\n")
		defer r.end()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		var pauses []int
		for i := range len(b.tries) - 1 {
			pauses = append(pauses, int(b.tries[i+1].Sub(b.tries[i])/time.Second))
		}
		if want := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}; len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
			t.Errorf("pauses of %v s", pauses)
		}
	})
}
