package chip

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

func sgp30Of(co2, voc uint16) *registers {
	return speaks(0x58, map[string][]uint16{string(sgp30Features): {0x0022}, string(sgp30Measure): {co2, voc}})
}

func TestSGP30(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := sgp30Of(450, 12)
		dev := open(t, "sgp30", bus)
		warms := map[string]string{"concentration_co2": "warms up", "concentration_voc": "warms up"}
		want := map[string]float64{"concentration_co2": 450, "concentration_voc": 12}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error)
		go func() { watched <- dev.(device.Watcher).Watch(ctx, func(r device.Reading) { t.Error(r) }) }()

		time.Sleep(14 * time.Second)
		lacks(t, dev, warms)
		time.Sleep(6500 * time.Millisecond)
		for range 5 {
			wants(t, dev, want) // it is not asked for each of these
		}
		asked := 0
		for _, w := range bus.writes {
			if slices.Equal(w, sgp30Measure) {
				asked++
			}
		}
		if asked != 20 {
			t.Errorf("the chip was asked %d times in 20 s", asked)
		}

		bus.breaks(errSettings)
		time.Sleep(sgp30Every)
		fails(t, dev, device.Offline)
		bus.breaks(nil)
		lacks(t, dev, warms) // from the start
		time.Sleep(sgp30Warm + sgp30Every)
		wants(t, dev, want)

		cancel()
		if err := <-watched; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	suite(t, func(t *testing.T) device.Device { return open(t, "sgp30", sgp30Of(450, 12)) })
}

// TestSGP30Watch: a chip that fails is asked by samples only, and is watched again once one succeeds.
func TestSGP30Watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := sgp30Of(450, 12)
		asked, broken := 0, false // under bus.mu
		answer := bus.answer
		bus.answer = func(w, r []byte) bool {
			if len(w) > 0 {
				asked++
			}
			answer(w, r)
			if broken {
				clear(r)
			}
			return true
		}
		breaks := func(b bool) {
			bus.mu.Lock()
			defer bus.mu.Unlock()
			asked, broken = 0, b
		}
		dev := open(t, "sgp30", bus)
		go dev.(device.Watcher).Watch(t.Context(), func(device.Reading) {})
		count := func() int {
			time.Sleep(10*time.Second + 50*time.Millisecond)
			bus.mu.Lock()
			defer bus.mu.Unlock()
			return asked
		}
		if n := count(); n < 9 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		breaks(true)
		time.Sleep(1500 * time.Millisecond) // it finds out
		breaks(true)
		if n := count(); n != 0 {
			t.Errorf("a chip that fails was asked %d times", n)
		}
		breaks(false)
		dev.(device.Sensor).Sample(t.Context())
		if n := count(); n < 9 {
			t.Errorf("found again, it was asked %d times", n)
		}
	})
}

func TestSGP30Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for bit := range 6 * 8 {
			fails(t, open(t, "sgp30", spoilt(sgp30Of(450, 12), string(sgp30Measure), bit)), device.Offline)
		}
		dev := open(t, "sgp30", sgp30Of(399, 60001))
		time.Sleep(sgp30Warm)
		lacks(t, dev, map[string]string{"concentration_co2": "399", "concentration_voc": "60001"})
		// an SGPC3 has the same address
		refused(t, config(t, "sgp30", speaks(0x58, map[string][]uint16{string(sgp30Features): {0x1006}})), device.Invalid, "no SGP30")
		refused(t, config(t, "sgp30", spoilt(sgp30Of(0, 0), string(sgp30Features), 9)), device.Offline, "CRC")
	})
}
