package chip

import (
	"testing"
	"testing/synctest"

	"agentsite/device"
)

func sht4x(temperature, humidity uint16) *registers {
	return speaks(0x44, map[string][]uint16{string(sht4xSerial): {0x0F57, 0x2A31}, string(sht4xMeasure): {temperature, humidity}})
}

func TestSHT4x(t *testing.T) {
	// the conversions of section 4.6, at two points that are whole numbers
	measured(t, "sht4x", func() *registers { return sht4x(0x6666, 0x8000) }, map[string]float64{"temperature": 25, "humidity": -6 + 125*32768.0/65535})
	synctest.Test(t, func(t *testing.T) {
		wants(t, open(t, "sht4x", sht4x(0x6666, 0)), map[string]float64{"temperature": 25, "humidity": 0}) // it is cropped
		wants(t, open(t, "sht4x", sht4x(0x6666, 0xFFFF)), map[string]float64{"temperature": 25, "humidity": 100})
		lacks(t, open(t, "sht4x", sht4x(0, 0x8000)), map[string]string{"temperature": "-45", "humidity": "-45"})
		lacks(t, open(t, "sht4x", sht4x(0xFFFF, 0x8000)), map[string]string{"temperature": "130", "humidity": "130"})

		for bit := range 6 * 8 {
			fails(t, open(t, "sht4x", spoilt(sht4x(0x6666, 0x8000), string(sht4xMeasure), bit)), device.Offline)
		}
		refused(t, config(t, "sht4x", spoilt(sht4x(0, 0), string(sht4xSerial), 3)), device.Offline, "CRC")
		refused(t, config(t, "sht4x", speaks(0x44, nil)), device.Offline, "CRC") // all zeros
	})
}
