package chip

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// gpsConfig is the YAML of gps. periph has no adapter.
type gpsConfig struct {
	board.Serial
	Baud int `json:"baud" jsonschema:"bits in a second: 9600 with most, 4800 or 115200 with some"`
}

// gpsFixes are the qualities of a position, by their number in NMEA 0183 (GGA,
// field 6).
var gpsFixes = []string{"none", "gps", "differential", "pps", "rtk", "float_rtk", "estimated", "manual", "simulated"}

// Validate finds mistakes without hardware.
func (c *gpsConfig) Validate() error {
	_, err := c.Conn(c.Baud)
	return err
}

// Describe needs no hardware.
func (c *gpsConfig) Describe() device.Description {
	return device.Description{Model: "GPS", Points: []device.Point{
		measures("latitude", "deg", "degrees north of the equator", -90, 90),
		measures("longitude", "deg", "degrees east of Greenwich", -180, 180),
		measures("altitude", "m", "height above the sea", -1000, 100000),
		measures("speed", "m/s", "speed over ground", 0, 1000),
		measures("satellites", "", "satellites in use", 0, 99),
		{Name: "fix", Kind: device.KindState, Description: "what the position comes from", Values: gpsFixes},
	}}
}

// Open finds the port.
func (c *gpsConfig) Open(ctx context.Context) (device.Device, error) {
	return openSerialSensor(ctx, c.Serial, c.Baud, c.Describe(), gpsListen)
}

// gpsListen waits for an RMC and a GGA of the same second, in either order.
func gpsListen(from *bufio.Reader, out *driver.Sample) error {
	var rmc, gga []string
	for {
		line, err := from.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // no line of NMEA is that long
		}
		if err != nil {
			return err
		}
		fields, ok := nmea(line)
		switch {
		case !ok:
			continue
		case strings.HasSuffix(fields[0], "RMC") && len(fields) >= 9:
			rmc = fields
		case strings.HasSuffix(fields[0], "GGA") && len(fields) >= 10:
			gga = fields
		}
		if rmc != nil && gga != nil && rmc[1] == gga[1] {
			gpsTell(rmc, gga, out)
			return nil
		}
	}
}

// nmea are the fields of a sentence whose checksum is right, the first with its
// sender and kind.
func nmea(line []byte) (fields []string, ok bool) {
	if i := bytes.LastIndexByte(line, '$'); i >= 0 {
		line = line[i+1:] // the bytes before it are the end of an incomplete sentence
	} else {
		return nil, false
	}
	text, sum, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte("*"))
	want, err := strconv.ParseUint(string(sum), 16, 8)
	if !ok || err != nil || len(sum) != 2 {
		return nil, false
	}
	var got byte
	for _, c := range text {
		got ^= c
	}
	return strings.Split(string(text), ","), got == byte(want)
}

const noFix = "there is no position; the antenna has to see the sky, and after power-on it takes minutes"

// gpsTell tells all points of a pair of sentences. Without a position there is none
// of its parts.
func gpsTell(rmc, gga []string, out *driver.Sample) {
	quality, err := strconv.Atoi(gga[6])
	if err != nil || quality < 0 || quality >= len(gpsFixes) || rmc[2] != "A" {
		quality = 0
	}
	tell := func(n float64, ok bool) {
		switch {
		case quality == 0:
			out.Fault(noFix)
		case !ok:
			out.Fault("the receiver sent an invalid number")
		default:
			out.Number(n)
		}
	}
	tell(degrees(gga[2], gga[3], "N", "S", 2))
	tell(degrees(gga[4], gga[5], "E", "W", 3))
	tell(decimal(gga[9]))
	knots, ok := decimal(rmc[7])
	tell(knots*1852/3600, ok)
	if n, ok := decimal(gga[7]); ok {
		out.Number(n)
	} else {
		out.Fault("the receiver did not send the number")
	}
	out.Value(device.Text(gpsFixes[quality]))
}

// degrees are of "4807.038","N": two or three digits of degrees, then minutes.
func degrees(text, side, plus, minus string, digits int) (float64, bool) {
	if len(text) < digits+2 || side != plus && side != minus {
		return 0, false
	}
	whole, ok := decimal(text[:digits])
	minutes, too := decimal(text[digits:])
	n := whole + minutes/60
	if side == minus {
		n = -n
	}
	return n, ok && too && minutes >= 0 && minutes < 60 && whole >= 0
}

// decimal is a number as NMEA writes them, with nothing else that Go would take.
func decimal(text string) (float64, bool) {
	if text == "" || strings.Trim(text, "-.0123456789") != "" || len(text) > 20 {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
