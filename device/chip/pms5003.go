package chip

import (
	"bufio"
	"context"
	"encoding/binary"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// pms5003Config is the YAML of pms5003. periph has no adapter.
type pms5003Config struct{ board.Serial }

// Plantower PMS5003, series data manual V2.3, appendix I. A frame is two letters, the length of the
// rest, 13 words and the sum of all bytes before.
const (
	pms5003Baud  = 9600
	pms5003Frame = 32
	pms5003First = 10 // where the three values "under atmospheric environment" begin
)

// Describe needs no hardware. There is no range: the datasheet's ends at "1000 or
// more", smoke is more, and the sum over a frame already tells what cannot be.
func (c *pms5003Config) Describe() device.Description {
	d := device.Description{Model: "PMS5003"}
	for _, p := range [][2]string{{"pm1", "1"}, {"pm2_5", "2.5"}, {"pm10", "10"}} {
		d.Points = append(d.Points, device.Point{Name: p[0], Kind: device.KindMeasurement, Unit: "ug/m3", Description: "particles of up to " + p[1] + " um in the air"})
	}
	return d
}

// Open finds the port.
func (c *pms5003Config) Open(ctx context.Context) (device.Device, error) {
	return openSerialSensor(ctx, c.Serial, pms5003Baud, c.Describe(), pms5003Listen)
}

// pms5003Listen waits for a whole frame whose sum is right.
func pms5003Listen(from *bufio.Reader, out *driver.Sample) error {
	for {
		frame, err := from.Peek(pms5003Frame)
		if err != nil {
			return err
		}
		if pms5003Right(frame) {
			for i := range 3 {
				out.Number(float64(binary.BigEndian.Uint16(frame[pms5003First+2*i:])))
			}
			return nil
		}
		if _, err := from.Discard(1); err != nil {
			return err
		}
	}
}

func pms5003Right(frame []byte) bool {
	if frame[0] != 'B' || frame[1] != 'M' || binary.BigEndian.Uint16(frame[2:]) != pms5003Frame-4 {
		return false
	}
	var sum uint16
	for _, b := range frame[:pms5003Frame-2] {
		sum += uint16(b)
	}
	return sum == binary.BigEndian.Uint16(frame[pms5003Frame-2:])
}
