package chip

import (
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

const (
	tmp102Temperature = 0x00
	tmp102Settings    = 0x01

	// tmp102Normal is 12 bits and 4 conversions per second, as after power-on. Its fault queue of 2
	// for the alert, which is not used, is 1 after power-on (table 7, page 7; table 10). So it shows
	// whether the settings are still ours.
	tmp102Normal  = 0x68A0
	tmp102Alert   = 0x0020                // follows the temperature
	tmp102First   = 35 * time.Millisecond // until the first conversion it reads 0 degrees
	tmp102Degrees = 3                     // its accuracy
)

// newTMP102 returns the Config of tmp102. The range is that of Texas Instruments SBOS397 in
// the chip's normal mode: 12 bits of 0.0625 degrees (table "12-bit temperature data
// format"). The chip has no id, so its settings are one: two of their bits are always set.
//
// periph's adapter is not used: it continues if the settings cannot be read, and keeps another
// program's extended mode without decoding it. Its Halt wakes the chip.
func newTMP102(at board.I2C) driver.Config {
	desc := device.Description{Model: "TMP102", Points: []device.Point{measures("temperature", "Cel", "temperature", -55, 128)}}
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				dev.writeWord(tmp102Settings, tmp102Normal)
				dev.checkWord(tmp102Settings, ^uint16(tmp102Alert), tmp102Normal)
				dev.sleep(tmp102First)
			},
			read: func(out *driver.Sample) {
				raw := dev.readWordTwice(tmp102Temperature)
				if raw&0x0F != 0 { // the lowest is set in the extended mode, the others never
					dev.fail(errSettings)
				}
				out.Near(float64(int16(raw))/256, tmp102Degrees)
				dev.checkSettings(tmp102Settings, ^uint16(tmp102Alert), tmp102Normal)
			},
		}
	}}
}
