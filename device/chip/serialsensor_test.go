package chip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
)

// says is a serial port on which first this comes, each time it is opened, and then
// that, again and again. Where there is no more to say it is silent.
func says(first, again string) func() (board.SerialPort, error) {
	return func() (board.SerialPort, error) {
		near, far := net.Pipe()
		go func() {
			for text := first + again; text != ""; text = again {
				if _, err := far.Write([]byte(text)); err != nil {
					return
				}
			}
		}()
		return near, nil
	}
}

// onSerial is the driver's Config on a board with this port.
func onSerial(t testing.TB, name string, open func() (board.SerialPort, error)) driver.Config {
	t.Helper()
	d, ok := driver.Find(Drivers(boardtest.Machine{Serial: open}.Board()), name)
	if !ok {
		t.Fatalf("there is no driver %s", name)
	}
	return d.Config()
}

// sentence adds the checksum.
func sentence(text string) string {
	var sum byte
	for _, c := range []byte(text) {
		sum ^= c
	}
	return fmt.Sprintf("$%s*%02X\r\n", text, sum)
}

// The example that is printed everywhere, with its checksums, and its second.
const (
	gpsRMC = "$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n"
	gpsGGA = "$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n"
)

func TestGPS(t *testing.T) {
	for name, first := range map[string]string{
		"both":              "",
		"the other order":   gpsGGA + gpsRMC,
		"from the middle":   gpsGGA[30:] + gpsRMC[3:],
		"a torn one":        gpsRMC[:20],
		"noise":             "\x00\xff\xfe" + strings.Repeat("U", 700) + "\n",
		"another second":    sentence("GPGGA,123518,0000.000,N,00000.000,E,1,08,0.9,1,M,1,M,,"),
		"a wrong checksum":  strings.Replace(gpsGGA, "4807", "4907", 1),
		"no checksum":       "$GPGGA,123519,0000.000,N,00000.000,E,1,08,0.9,1,M,1,M,,\r\n",
		"others in between": gpsRMC + sentence("GPGSV,1,1,00") + sentence("GPRMC") + sentence(""),
	} {
		t.Run(name, func(t *testing.T) {
			dev := opened(t, onSerial(t, "gps", says(first, gpsRMC+gpsGGA)))
			reads(t, dev, map[string]string{"latitude": "48.1173", "longitude": "11.5166667", "altitude": "545.4", "speed": "11.5235556", "satellites": "8", "fix": "gps"})
		})
	}
	south := sentence("GNRMC,1,A,3351.5000,S,15112.6000,W,0.0,,010126,,,R") + sentence("GNGGA,1,3351.5000,S,15112.6000,W,4,12,0.5,-3.5,M,,M,,")
	reads(t, opened(t, onSerial(t, "gps", says("", south))), map[string]string{"latitude": "-33.8583333", "longitude": "-151.21", "altitude": "-3.5", "speed": "0", "satellites": "12", "fix": "rtk"})
}

// TestGPSWithoutPosition: messages of a receiver that has just been switched on, and malformed
// ones.
func TestGPSWithoutPosition(t *testing.T) {
	for rmc, gga := range map[string]string{
		"GPRMC,,V,,,,,,,,,,N": "GPGGA,,,,,,0,00,99.99,,,,,,",
		"GPRMC,7,V,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W": "GPGGA,7,4807.038,N,01131.000,E,1,00,0.9,545.4,M,46.9,M,,",
		"GPRMC,8,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W": "GPGGA,8,4807.038,N,01131.000,E,17,00,0.9,545.4,M,46.9,M,,",
	} {
		dev := opened(t, onSerial(t, "gps", says("", sentence(rmc)+sentence(gga))))
		reads(t, dev, map[string]string{"latitude": "", "longitude": "", "altitude": "", "speed": "", "satellites": "0", "fix": "none"})
	}
	mad := sentence("GPRMC,1,A,9907.0,N,18100.0,E,NaN,,,,") + sentence("GPGGA,1,9907.0,N,18100.0,E,1,1e9,,Inf,M,,M,,")
	reads(t, opened(t, onSerial(t, "gps", says("", mad))), map[string]string{"latitude": "", "longitude": "", "altitude": "", "speed": "", "satellites": "", "fix": ""})
	mad = sentence("GPRMC,1,A,4860.0,N,x,E,0x10,,,,") + sentence("GPGGA,1,4860.0,N,-1100.0,E,1,,,1_0,M,,M,,")
	reads(t, opened(t, onSerial(t, "gps", says("", mad))), map[string]string{"latitude": "", "longitude": "", "altitude": "", "speed": "", "satellites": "", "fix": "gps"})
}

// frame returns a frame of a PMS5003.
func frame(values ...uint16) string {
	b := []byte{'B', 'M', 0, 28}
	for i := range 13 {
		var v uint16
		if i >= 3 && i-3 < len(values) {
			v = values[i-3]
		}
		b = append(b, byte(v>>8), byte(v))
	}
	var sum uint16
	for _, c := range b {
		sum += uint16(c)
	}
	return string(append(b, byte(sum>>8), byte(sum)))
}

func TestPMS5003(t *testing.T) {
	right := frame(5, 300, 12)
	for name, first := range map[string]string{
		"whole":           "",
		"from the middle": right[7:],
		"a torn one":      right[:20],
		"noise":           strings.Repeat("BMB\xff", 400),
		"a wrong sum":     strings.Replace(frame(9, 9, 9), "\x09", "\x08", 1),
		"letters within":  frame('B'<<8|'M', 28, 1)[8:],
		"another length":  "BM\x00\x14",
	} {
		t.Run(name, func(t *testing.T) {
			reads(t, opened(t, onSerial(t, "pms5003", says(first, right))), map[string]string{"pm1": "5", "pm2_5": "300", "pm10": "12"})
		})
	}
	reads(t, opened(t, onSerial(t, "pms5003", says("", frame(5, 2000, 65535)))), map[string]string{"pm1": "5", "pm2_5": "2000", "pm10": "65535"})
}

// endless is input without an end: a line without a newline, and no frame.
var endless = "$" + strings.Repeat("U", 1<<20)

// TestHeard tests the common behaviour of all parts on a serial port.
func TestHeard(t *testing.T) {
	for name, text := range map[string]string{"gps": gpsRMC + gpsGGA, "pms5003": frame(1, 2, 3)} {
		t.Run(name, func(t *testing.T) {
			port := says("", text)
			dev := opened(t, onSerial(t, name, func() (board.SerialPort, error) { return port() }))
			sensor := dev.(device.Sensor)
			port = func() (board.SerialPort, error) { return nil, fmt.Errorf("open: %w", syscall.ENOENT) }
			_, err := sensor.Sample(t.Context())
			faulted(t, err, device.Offline, "there is no /dev/serial0")
			port = func() (board.SerialPort, error) {
				near, far := net.Pipe()
				far.Close()
				return near, nil
			}
			_, err = sensor.Sample(t.Context())
			faulted(t, err, device.Offline, "disconnected")
			synctest.Test(t, func(t *testing.T) {
				port = says(endless, "")
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				dev, err := onSerial(t, name, port).Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err = dev.(device.Sensor).Sample(ctx)
				runtime.ReadMemStats(&after)
				if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(3*len(endless)) {
					t.Errorf("%d bytes without an end took %d of memory", len(endless), grown)
				}
				if faulted(t, err, device.Offline, "on /dev/serial0 in time"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
			port = says("", text)
			if _, err := sensor.Sample(t.Context()); err != nil {
				t.Error(err)
			}
			_, err = onSerial(t, name, func() (board.SerialPort, error) { return nil, syscall.EACCES }).Open(t.Context())
			faulted(t, err, device.Denied, "group dialout")
			t.Run("conformance", func(t *testing.T) {
				devicetest.Run(t, func(t *testing.T) device.Device { return opened(t, onSerial(t, name, says("", text))) })
			})
		})
	}
	mistakes(t, "gps", map[string]func(*gpsConfig){
		"baud: 9601":       func(c *gpsConfig) { c.Baud = 9601 },
		"like /dev/serial": func(c *gpsConfig) { c.Port = "COM1" },
	})
	mistakes(t, "pms5003", map[string]func(*pms5003Config){"like /dev/serial": func(c *pms5003Config) { c.Port = "/dev" }})
}

// FuzzHeard is noise on a serial port, and then what is right.
func FuzzHeard(f *testing.F) {
	f.Add([]byte("$GPGGA,1,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*"), byte(0), uint16(3))
	f.Add([]byte("BM\x00\x1cBM"), byte(1), uint16(0x424D))
	f.Fuzz(func(t *testing.T, noise []byte, kind byte, value uint16) {
		text := map[byte]string{0: gpsRMC + gpsGGA, 1: frame(value, value)}[kind%2]
		if kind&2 != 0 { // noise with a right checksum
			text = sentence("GPRMC,1,A,"+strings.Trim(string(noise), "$*\r\n")+",,,,,,,") + sentence("GPGGA,1,"+strings.Trim(string(noise), "$*\r\n")+",,,,,,,,,") + text
		}
		dev := opened(t, onSerial(t, []string{"gps", "pms5003"}[kind%2], says(string(noise), text)))
		believable(t, dev)
	})
}
