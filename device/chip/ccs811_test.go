package chip

import (
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// ccs811Of is a chip that has to be started, and answers with these six bytes.
func ccs811Of(result ...byte) *registers {
	b := &registers{addr: 0x5A}
	b.mem[ccs811ID] = 0x81
	b.mem[ccs811Status] = ccs811Valid
	b.answer = func(w, r []byte) bool {
		switch w[0] {
		case ccs811Start:
			b.mem[ccs811Status] |= ccs811Running
		case ccs811Result:
			copy(r, result)
			r[4] |= b.mem[ccs811Status]
			if b.mem[ccs811Mode] != ccs811Measures {
				r[4] &^= ccs811Ready
			}
			return true
		}
		return false
	}
	return b
}

func TestCCS811(t *testing.T) {
	measured(t, "ccs811", func() *registers { return ccs811Of(0x01, 0xA2, 0x00, 0x03, ccs811Ready, 0) }, map[string]float64{"concentration_co2": 418, "concentration_voc": 3})
	synctest.Test(t, func(t *testing.T) {
		// newer firmware; periph's adapter makes 12822 ppm of it
		wants(t, open(t, "ccs811", ccs811Of(0x72, 0x16, 0x80, 0x00, ccs811Ready, 0)), map[string]float64{"concentration_co2": 29206, "concentration_voc": 32768})
		lacks(t, open(t, "ccs811", ccs811Of(0x01, 0x02, 0x80, 0x01, ccs811Ready, 0)), map[string]string{"concentration_co2": "258", "concentration_voc": "32769"})
	})
}

func TestCCS811Faults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for id := range 256 { // the errors that the chip itself reports
			fails(t, open(t, "ccs811", ccs811Of(0x01, 0xA2, 0, 3, ccs811Ready|ccs811Error, byte(id))), device.Offline)
		}

		bus := ccs811Of(0x01, 0xA2, 0, 3, 0, 0)
		dev := open(t, "ccs811", bus)
		lacks(t, dev, map[string]string{"concentration_co2": "takes a second", "concentration_voc": "takes a second"})
		time.Sleep(ccs811Silent)
		fails(t, dev, device.Offline) // nothing comes

		bus = ccs811Of(0x01, 0xA2, 0, 3, ccs811Ready, 0)
		dev = open(t, "ccs811", bus)
		bus.mem[ccs811Status], bus.mem[ccs811Mode] = ccs811Valid, 0 // it lost its supply
		fails(t, dev, device.Offline)
		wants(t, dev, map[string]float64{"concentration_co2": 418, "concentration_voc": 3})

		bus = ccs811Of()
		bus.mem[ccs811Status] = 0
		refused(t, config(t, "ccs811", bus), device.Offline, "CCS811")
		bus.mem[ccs811ID] = 0x82
		refused(t, config(t, "ccs811", bus), device.Invalid, "no CCS811")
	})
}
