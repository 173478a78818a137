package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

// pijuice is a board whose answers have their checksums.
func pijuice(status, charge byte, millivolts uint16) *registers {
	data := map[byte][]byte{
		pijuiceStatus: {status}, pijuiceCharge: {charge}, pijuiceVoltage: {byte(millivolts), byte(millivolts >> 8)},
	}
	return &registers{addr: 0x14, answer: func(w, r []byte) bool {
		sum := byte(0xFF)
		for i, b := range data[w[0]] {
			r[i] = b
			sum ^= b
		}
		r[len(data[w[0]])] = sum
		return true
	}}
}

func TestPiJuice(t *testing.T) {
	suite(t, func(t *testing.T) device.Device { return open(t, "pijuice", pijuice(0x30, 42, 3712)) })
	for status, want := range map[byte]bool{0x00: false, 0x10: false, 0x20: true, 0x30: true, 0x40: false, 0xC0: true, 0x03: false} {
		synctest.Test(t, func(t *testing.T) {
			got, err := open(t, "pijuice", pijuice(status, 42, 3712)).(device.Sensor).Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range []device.Value{device.Number(3.712), device.Number(42), device.Bool(want)} {
				if got[i].Quality != device.Good || got[i].Value != v {
					t.Errorf("%#02x: %+v instead of %v", status, got[i], v)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		lacks := func(what string, b *registers) {
			got, err := open(t, "pijuice", b).(device.Sensor).Sample(t.Context())
			if err != nil || got[0].Quality != device.Bad || got[1].Quality != device.Bad {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		}
		lacks("no battery", pijuice(0x0C, 0, 0))
		lacks("more than there can be", pijuice(0x30, 101, 3712))
	})
}

// TestPiJuiceDisturbed: an answer with a wrong checksum is no value.
func TestPiJuiceDisturbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := pijuice(0x30, 42, 3712)
		dev := open(t, "pijuice", bus)
		right, n, each := bus.answer, 0, 3
		bus.answer = func(w, r []byte) bool {
			right(w, r)
			if n++; n%each == 0 {
				r[0] ^= 0x10
			}
			return true
		}
		for range 20 {
			got, err := dev.(device.Sensor).Sample(t.Context())
			if err != nil || got[1].Value != device.Number(42) || got[2].Value != device.Bool(true) {
				t.Error(got, err)
			}
		}
		each = 1
		fails(t, dev, device.Offline)
	})
	for _, b := range []byte{0, 0xFF} {
		refused(t, config(t, "pijuice", &registers{addr: 0x14, answer: func(w, r []byte) bool {
			for i := range r {
				r[i] = b
			}
			return true
		}}), device.Offline, "CRC")
	}
}
