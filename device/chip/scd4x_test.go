package chip

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// scd4xOf is a chip that measures every 5 s once it is started, and hands each
// measurement out once. It says its number only when it is awake and at rest, which
// it is not at first.
func scd4xOf(co2, temperature, humidity uint16) *registers {
	return scd4xEach(scd4xEvery, co2, temperature, humidity)
}

func scd4xEach(every time.Duration, co2, temperature, humidity uint16) *registers {
	answers := map[string][]uint16{string(scd4xSerial): {0x73B1, 0xEB07, 0x3B0C}, string(scd4xRead): {co2, temperature, humidity}}
	b := speaks(0x62, answers)
	whole := b.answer
	awake := false
	fresh := time.Now() // when the next one is there; zero while it rests
	b.answer = func(w, r []byte) bool {
		switch string(w) {
		case string(scd4xStart):
			fresh = time.Now().Add(every)
		case string(scd4xStop):
			fresh = time.Time{}
		case string(scd4xRead):
			fresh = time.Now().Add(every)
		}
		awake = awake || string(w) == string(scd4xWake)
		if string(w) == string(scd4xSerial) && (!awake || !fresh.IsZero()) {
			w = []byte("not now")
		}
		answers[string(scd4xReady)] = []uint16{0x8000}
		if !fresh.IsZero() && !time.Now().Before(fresh) {
			answers[string(scd4xReady)] = []uint16{0x8006} // as periph recorded it
		}
		return whole(w, r)
	}
	return b
}

// what periph recorded first (scd4x_test.go)
var scd4xWants = map[string]float64{"concentration_co2": 556, "temperature": -45 + 175*26381.0/65535, "humidity": 100 * 19720.0 / 65535}

func TestSCD4x(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := scd4xOf(0x022C, 0x670D, 0x4D08)
		dev := open(t, "scd4x", bus)
		notYet := map[string]string{"concentration_co2": "takes 5 s", "temperature": "takes 5 s", "humidity": "takes 5 s"}
		lacks(t, dev, notYet)
		time.Sleep(scd4xEvery)
		begun := time.Now()
		wants(t, dev, scd4xWants)
		time.Sleep(3 * time.Second)
		wants(t, dev, scd4xWants) // the last one again,
		readings, _ := dev.(device.Sensor).Sample(t.Context())
		if age := readings[0].At.Sub(begun); age < 0 || age > time.Second {
			t.Errorf("it says that it was measured after %v", age) // from its own time
		}

		bus.breaks(errSettings)
		fails(t, dev, device.Offline)
		bus.breaks(nil)
		lacks(t, dev, notYet) // nothing older than a failure is told
		time.Sleep(scd4xEvery)
		wants(t, dev, scd4xWants)

		whole := bus.answer
		bus.answer = func(w, r []byte) bool { // started again by its supply, and at rest
			if string(w) == string(scd4xReady) {
				return whole(scd4xStop, nil) && whole(w, r)
			}
			return whole(w, r)
		}
		time.Sleep(3*scd4xEvery + time.Second)
		fails(t, dev, device.Offline) // not the last one for ever
		bus.answer = whole
		lacks(t, dev, notYet) // it was started again
		time.Sleep(scd4xEvery)
		wants(t, dev, scd4xWants)

		dev.Close()
		if last := bus.writes[len(bus.writes)-1]; !slices.Equal(last, scd4xStop) {
			t.Errorf("the last command was %x; closed, it still measures", last)
		}
	})
	suite(t, func(t *testing.T) device.Device { return open(t, "scd4x", scd4xOf(0x022C, 0x670D, 0x4D08)) })
}

func TestSCD4xCRC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for bit := range 9 * 8 {
			dev := open(t, "scd4x", spoilt(scd4xOf(0x022C, 0x670D, 0x4D08), string(scd4xRead), bit))
			time.Sleep(scd4xEvery)
			fails(t, dev, device.Offline)
		}
		refused(t, config(t, "scd4x", spoilt(scd4xOf(0, 0, 0), string(scd4xSerial), 70)), device.Offline, "CRC")

		dev := open(t, "scd4x", scd4xOf(40001, 0, 0x4D08))
		time.Sleep(scd4xEvery)
		lacks(t, dev, map[string]string{"concentration_co2": "40001", "temperature": "-45", "humidity": "-45"})

		dev = open(t, "scd4x", scd4xOf(0, 0xFFFF, 0x4D08))
		time.Sleep(scd4xEvery)
		lacks(t, dev, map[string]string{"concentration_co2": "carbon dioxide", "temperature": "130", "humidity": "130"})
	})
}
