package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

// ads1x15 is a chip with a result for each setting of its multiplexer. It is done
// when its settings have been read so many times.
func ads1x15(results map[byte]uint16, reads int) *registers {
	b := &registers{addr: 0x48, words: map[byte]uint16{}}
	var left int
	b.answer = func(w, r []byte) bool {
		switch {
		case len(w) == 3:
			settings := uint16(w[1])<<8 | uint16(w[2])
			b.words[ads1x15Settings], b.words[ads1x15Result] = settings&^ads1x15Idle, 0x1234 // what is read too early
			left = reads
			return true
		case w[0] == ads1x15Settings:
			if left--; left <= 0 {
				b.words[ads1x15Result] = results[byte(b.words[ads1x15Settings]>>12)&7]
				b.words[ads1x15Settings] |= ads1x15Idle
			}
		}
		return false
	}
	return b
}

func TestADS1115(t *testing.T) {
	bus := func() *registers {
		return ads1x15(map[byte]uint16{4: 0x0000, 5: 0x2000, 6: 0xFFFF, 7: 0x6A00}, 2)
	}
	measured(t, "ads1115", bus, map[string]float64{"voltage0": 0, "voltage1": 1.536, "voltage2": -0.0001875, "voltage3": 5.088})
}

// The results are those that periph recorded (ads1x15_test.go), at gain 2/3.
func TestADS1015(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config(t, "ads1015", ads1x15(map[byte]uint16{1: 0xFF50, 7: 0x52D0, 2: 0x52C0, 3: 0xAD30}, 1)).(*ads1x15Config)
		c.Channels = []string{"0-3", "3", "1-3", "2-3"}
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wants(t, dev, map[string]float64{"voltage0-3": -0.033, "voltage3": 3.975, "voltage1-3": 3.972, "voltage2-3": -3.975})
		dev = open(t, "ads1015", ads1x15(map[byte]uint16{4: 0x2001}, 1))
		fails(t, dev, device.Invalid)
	})
}

func TestADS1115Beyond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config(t, "ads1115", ads1x15(map[byte]uint16{4: 0x7FFF, 5: 0x8000, 6: 0x8001, 7: 0x7FFE}, 1)).(*ads1x15Config)
		c.Gain = "16"
		dev, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lacks(t, dev, map[string]string{"voltage0": "0.256 V", "voltage1": "beyond"})
		// 0.3 V below ground is as far as an input may go
		lacks(t, open(t, "ads1115", ads1x15(map[byte]uint16{4: 0xF000}, 2)), map[string]string{"voltage0": "only -0.3..5.8 can"})
	})
}

// A conversion that never ends is not an endless loop, and settings that the chip lost
// are no value of another channel.
func TestADS1115Hostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails(t, open(t, "ads1115", ads1x15(nil, 99)), device.Offline)

		bus := ads1x15(nil, 2)
		dev, whole := open(t, "ads1115", bus), bus.answer
		bus.answer = func(w, r []byte) bool {
			bus.words[ads1x15Settings] = 0x8583 // as after power-on
			return len(w) == 3
		}
		fails(t, dev, device.Offline)
		fails(t, dev, device.Invalid) // now it does not even take settings
		bus.answer = whole
		wants(t, dev, map[string]float64{"voltage0": 0, "voltage1": 0, "voltage2": 0, "voltage3": 0})
	})
	absent := ads1x15(nil, 2)
	absent.addr = 0x49
	refused(t, config(t, "ads1115", absent), device.Offline, "0x48")
}

func TestADS1115Validate(t *testing.T) {
	bus := ads1x15(nil, 2)
	for _, test := range []struct {
		channels []string
		gain     string
		says     string
	}{
		{[]string{"0"}, "3", "gain: \"3\""},
		{[]string{"4"}, "1", "channels: \"4\""},
		{[]string{"1-0"}, "1", "channels: \"1-0\""},
		{[]string{"0", "2-3", "0"}, "1", "0 is written twice"},
		{nil, "1", "channels: "},
	} {
		c := config(t, "ads1115", bus).(*ads1x15Config)
		c.Channels, c.Gain = test.channels, test.gain
		c.Describe() // does not mind
		refused(t, c, device.Invalid, test.says)
	}
	if len(bus.writes) > 0 {
		t.Errorf("written before it was checked: %x", bus.writes)
	}
}
