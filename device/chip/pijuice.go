package chip

import (
	"encoding/binary"
	"slices"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// The commands of the PiJuice's controller, each of which is answered with little-endian data and a checksum, are
// those of its maker's library (github.com/PiSupply/PiJuice, Software/Source/pijuice.py, PiJuiceStatus).
const (
	pijuiceStatus  = 0x40
	pijuiceCharge  = 0x41
	pijuiceVoltage = 0x49

	pijuiceNoBattery = 3 // in bits 2 and 3 of the status
	pijuiceWeak      = 2 // in bits 4 and 5, of the board's own input, and 6 and 7, of the 5 V of the header; 3 is present
)

// newPiJuice returns the Config of pijuice.
func newPiJuice(at board.I2C) driver.Config {
	desc := device.Description{Model: "PiJuice", Points: []device.Point{
		measures("voltage", "V", "voltage of the battery", 0, 6),
		measures("charge", "%", "charge of the battery, as the board estimates it", 0, 100),
		{Name: "mains", Kind: device.KindState, Description: "the board is fed from outside, by its own input or by that " +
			"of the Raspberry Pi"},
	}}
	return &sensorConfig{at, desc, func(dev *i2cChip) sensor {
		return sensor{
			configure: func() { dev.pijuice(pijuiceStatus, 1) },
			read: func(out *driver.Sample) {
				status := dev.pijuice(pijuiceStatus, 1)[0]
				charge := dev.pijuice(pijuiceCharge, 1)[0]
				volts := float64(binary.LittleEndian.Uint16(dev.pijuice(pijuiceVoltage, 2))) / 1000
				if status>>2&3 == pijuiceNoBattery {
					const why = "the board has no battery"
					out.Fault(why)
					out.Fault(why)
				} else {
					out.Number(volts)
					out.Number(float64(charge))
				}
				out.Value(device.Bool(status>>4&3 >= pijuiceWeak || status>>6 >= pijuiceWeak))
			},
		}
	}}
}

// pijuice reads the answer to a command, once more where its checksum is wrong.
func (d *i2cChip) pijuice(command byte, n int) []byte {
	answer := make([]byte, n+1)
	for try := range 2 {
		d.readFrom(command, answer)
		sum := byte(0xFF)
		for _, b := range answer[:n] {
			sum ^= b
		}
		if sum == answer[n] {
			break
		}
		if try > 0 {
			d.fail(errCRC)
		}
	}
	return slices.Clip(answer[:n])
}
