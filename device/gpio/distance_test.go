package gpio

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board/boardtest"
)

// ultrasonic makes a sensor of GPIO17 (trigger) and GPIO18 (echo), with echoes of
// that length; with 0 there is none, and a negative one does not end.
func ultrasonic(chip *boardtest.Chip, echo time.Duration) *boardtest.Chip {
	var asked time.Time
	chip.React(func(offset int, level bool, _ func(int, bool)) {
		switch {
		case offset != 17 || echo == 0:
		case level:
			asked = time.Now()
		case time.Since(asked) >= 10*time.Microsecond:
			time.AfterFunc(450*time.Microsecond, func() { chip.Drive(18, true) })
			if echo > 0 {
				time.AfterFunc(450*time.Microsecond+echo, func() { chip.Drive(18, false) })
			}
		}
	})
	return chip
}

func distanceOn(chip *boardtest.Chip) *Distance {
	return &Distance{Trigger: "GPIO17", Echo: "GPIO18", Temperature: 20, board: boardtest.Lines(chip)}
}

func TestDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := ultrasonic(boardtest.Header(), time.Millisecond)
		dev := open(t, distanceOn(chip))
		read := func() device.Reading {
			t.Helper()
			r, err := dev.(device.Sensor).Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return r[0]
		}
		for echo, want := range map[time.Duration]float64{116500 * time.Nanosecond: 0.02, time.Millisecond: 0.1716, 20 * time.Millisecond: 3.432} {
			ultrasonic(chip, echo)
			if r := read(); r.Quality != device.Good || r.Value.Number() < want-0.001 || r.Value.Number() > want+0.001 {
				t.Errorf("%v: %+v, want %v", echo, r, want)
			}
		}
		for name, echo := range map[string]time.Duration{"too near": 50 * time.Microsecond, "nothing there": 38 * time.Millisecond, "nothing at all": 200 * time.Millisecond} {
			ultrasonic(chip, echo)
			if r := read(); r.Quality != device.Bad || r.Why == "" || !r.Value.IsZero() {
				t.Errorf("%s: %+v", name, r)
			}
		}
		ultrasonic(chip, -1)
		if r := read(); r.Quality != device.Bad {
			t.Errorf("an echo that does not end: %+v", r)
		}
		_, err := dev.(device.Sensor).Sample(t.Context())
		faulted(t, err, device.Offline, "on before the sound")
		chip.Drive(18, false)
		ultrasonic(chip, 0)
		_, err = dev.(device.Sensor).Sample(t.Context())
		faulted(t, err, device.Offline, "does not answer")
		ultrasonic(chip, time.Millisecond)
		chip.Unplug()
		_, err = dev.(device.Sensor).Sample(t.Context())
		faulted(t, err, device.Offline, "plug it in again")
		chip.Plug()
		read()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
		defer cancel()
		if _, err := dev.(device.Sensor).Sample(ctx); err != context.DeadlineExceeded {
			t.Error(err)
		}
		time.Sleep(time.Second)
		read() // the echo of before does not count
		if err := dev.Close(); err != nil || chip.Driven(17) || chip.Level(17) {
			t.Errorf("closed: %v; the trigger is held or high", err)
		}
	})
}

func TestDistanceMistakes(t *testing.T) {
	for _, c := range []Distance{{Trigger: "GPIO1", Echo: "GPIO1"}, {Trigger: "GPIO1", Echo: "GPIO2", Temperature: 200}} {
		faulted(t, c.Validate(), device.Invalid, "")
	}
}
