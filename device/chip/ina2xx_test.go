package chip

import (
	"maps"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"agentsite/device"

	"periph.io/x/conn/v3/i2c"
)

func ina(model ina2xx, shunt, bus uint16) *registers {
	words := map[byte]uint16{ina2xxShunt: shunt, ina2xxBus: bus}
	maps.Copy(words, model.ids)
	return &registers{addr: 0x40, words: words}
}

func TestINA2xx(t *testing.T) {
	// 20 mV and 11.98 V are SBOS448's example (figure 27), with a shunt of 0.1 ohm
	measured(t, "ina219", func() *registers { return ina(ina219, 0x07D0, 0x5D98) }, map[string]float64{"voltage": 11.98, "current": 0.2, "power": 2.396})
	measured(t, "ina226", func() *registers { return ina(ina226, 0x1F40, 0x2570) }, map[string]float64{"voltage": 11.98, "current": 0.2, "power": 2.396})
	measured(t, "ina260", func() *registers { return ina(ina260, 0xFF9C, 0x2570) }, map[string]float64{"voltage": 11.98, "current": -0.125, "power": -1.4975})
	synctest.Test(t, func(t *testing.T) {
		// SBOS547's example: 10 A through 2 mohm
		c := config(t, "ina226", ina(ina226, 0x1F40, 0x2570)).(*ina2xxConfig)
		c.Shunt = 0.002
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wants(t, dev, map[string]float64{"voltage": 11.98, "current": 10, "power": 119.8})
	})
}

func TestINA2xxBeyond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beyond := map[string]string{"current": "beyond", "power": "beyond"}
		for _, full := range []uint16{0x7D00, 0x8300, 0x7FFF, 0x8000} {
			lacks(t, open(t, "ina219", ina(ina219, full, 0x5D98)), map[string]string{"current": "beyond 3.2 A", "power": "beyond 3.2 A"})
		}
		lacks(t, open(t, "ina219", ina(ina219, 0, 0xFFF8)), map[string]string{"voltage": "only 0..26 can", "current": "voltage", "power": "voltage"})
		for _, full := range []uint16{0x7FFF, 0x8001, 0x8000} {
			lacks(t, open(t, "ina226", ina(ina226, full, 0x2570)), beyond)
		}
		lacks(t, open(t, "ina226", ina(ina226, 0, 0x8000)), map[string]string{"voltage": "only 0..36 can", "current": "voltage", "power": "voltage"})
		lacks(t, open(t, "ina260", ina(ina260, 12000, 0x2570)), map[string]string{"current": "beyond 15 A", "power": "beyond 15 A"})
	})
}

// TestINA2xxDisturbed: where each byte is spoilt with a chance of 0.3, no value is another than the
// chip's, and one that keeps changing is a fault. A new measurement between two readings is none.
func TestINA2xxDisturbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(34, 7))
		for name, model := range map[string]ina2xx{"ina219": ina219, "ina226": ina226, "ina260": ina260} {
			bus, spoil := ina(model, 0x0100, 0x0FA2), 0.0
			plain := &registers{addr: bus.addr, words: bus.words}
			bus.answer = func(w, r []byte) bool {
				plain.Tx(plain.addr, w, r)
				for i := range r {
					if rng.Float64() < spoil {
						r[i] = byte(rng.Uint32())
					}
				}
				return true
			}
			sample := open(t, name, bus).(device.Sensor).Sample
			want, err := sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			spoil = 0.3
			good := 0
			for range 1000 {
				got, _ := sample(t.Context())
				for i, r := range got {
					if r.Quality == device.Good && r.Value != want[i].Value {
						t.Fatalf("%s: %s is %v, and not %v", name, r.Point, r.Value, want[i].Value)
					}
					good++
				}
			}
			spoil = 0
			if good == 0 {
				t.Errorf("%s: nothing was read in a thousand samples", name)
			}
			n := 0
			bus.answer = func(w, r []byte) bool {
				if n++; n%2 == 0 && w[0] != ina2xxSettings { // each second reading
					bus.words[ina2xxShunt]++
				}
				return false
			}
			if got, err := sample(t.Context()); err != nil || got[1].Quality != device.Good {
				t.Errorf("%s, between two measurements: %v %v", name, got, err)
			}
		}
	})
}

func TestINA2xxWrongChip(t *testing.T) {
	refused(t, config(t, "ina226", ina(ina260, 0, 0)), device.Invalid, "no INA226: its id is 0x2270, not 0x2260")
	refused(t, config(t, "ina260", ina(ina226, 0, 0)), device.Invalid, "no INA260")
	refused(t, config(t, "ina226", ina(ina219, 0, 0)), device.Invalid, "no INA226")
	forgets := ina(ina219, 0, 0)
	forgets.answer = func(w, r []byte) bool { return len(w) == 3 }
	refused(t, config(t, "ina219", forgets), device.Invalid, "no INA219")
	for _, shunt := range []float64{0, -0.1, 101} {
		c := config(t, "ina219", forgets).(*ina2xxConfig)
		c.Shunt = shunt
		refused(t, c, device.Invalid, "0.0001 to 100")
	}
}

func inaOf(model ina2xx) func(seed []byte) i2c.Bus {
	return func(seed []byte) i2c.Bus {
		shunt, bus := pair(seed)
		return ina(model, shunt, bus)
	}
}
