package scan

import (
	"slices"
	"time"

	"agentsite/device/board"
)

// Confidence is the certainty of an identification.
type Confidence string

const (
	Certain   Confidence = "certain"   // the part identifies itself
	Likely    Confidence = "likely"    // few other parts behave like this
	Candidate Confidence = "candidate" // the address responds, and this part can have it
)

// signature identifies a part.
type signature struct {
	part       string
	driver     string // of device/chip
	kernel     string // name of the kernel driver; "" for none
	addresses  []uint16
	confidence Confidence // of a match
	ids        []id
	// ask reports whether a part without registers is present. It sends commands, so that it
	// is called only when probing.
	ask func(chip) (bool, error)
	// silent is true for a part that acknowledges no read before a command.
	silent bool
	// behind finds the parts behind a bridge, which is no device itself, as further keys of
	// its driver; ok is false if there are none.
	behind func(chip) (keys string, ok bool)
	// says is the advice if behind finds none, with verbs for address and bus.
	says string
}

// id is a register's number and its expected content.
type id struct {
	register byte
	want     string
	mask     string // of the compared bits; "" is all of them
}

// signatures are tried in this order. Registers come before commands, so that a part with
// registers gets no command of another part.
var signatures = []signature{
	{part: "BME280", driver: "bme280", kernel: "bme280", addresses: board.Addresses(0x76, 0x77), confidence: Certain, ids: []id{{0xD0, "\x60", ""}}},
	{part: "BMP280", driver: "bmp280", kernel: "bmp280", addresses: board.Addresses(0x76, 0x77), confidence: Certain, ids: []id{{0xD0, "\x58", ""}}},
	{part: "BME680", driver: "bme680", kernel: "bme680", addresses: board.Addresses(0x76, 0x77), confidence: Certain, ids: []id{{0xD0, "\x61", ""}}},
	{part: "BMP180", driver: "bmp180", kernel: "bmp180", addresses: board.Addresses(0x77, 0x77), confidence: Certain, ids: []id{{0xD0, "\x55", ""}}},
	{part: "MCP9808", driver: "mcp9808", kernel: "jc42", addresses: board.Addresses(0x18, 0x1f), confidence: Certain, ids: []id{{0x06, "\x00\x54", ""}, {0x07, "\x04", ""}}},
	{part: "ADXL345", driver: "adxl345", kernel: "adxl345", addresses: []uint16{0x1d, 0x53}, confidence: Certain, ids: []id{{0x00, "\xE5", ""}}},
	{part: "INA226", driver: "ina226", kernel: "ina226", addresses: board.Addresses(0x40, 0x4f), confidence: Certain, ids: []id{{0xFF, "\x22\x60", "\xFF\xF0"}}},
	{part: "INA260", driver: "ina260", kernel: "ina260", addresses: board.Addresses(0x40, 0x4f), confidence: Certain, ids: []id{{0xFF, "\x22\x70", "\xFF\xF0"}}},
	{part: "INA219", driver: "ina219", kernel: "ina219", addresses: board.Addresses(0x40, 0x4f), confidence: Likely, ids: []id{{0x00, "\x39\x9F", ""}}},
	{part: "MPU6050", driver: "mpu6050", kernel: "mpu6050", addresses: board.Addresses(0x68, 0x69), confidence: Certain, ids: []id{{0x75, "\x68", ""}}},
	{part: "MPU6500", driver: "mpu6500", kernel: "mpu6500", addresses: board.Addresses(0x68, 0x69), confidence: Certain, ids: []id{{0x75, "\x70", ""}}},
	{part: "MPU9250", driver: "mpu9250", kernel: "mpu9250", addresses: board.Addresses(0x68, 0x69), confidence: Certain, ids: []id{{0x75, "\x71", ""}}},
	{part: "MPU9255", driver: "mpu9250", kernel: "mpu9255", addresses: board.Addresses(0x68, 0x69), confidence: Certain, ids: []id{{0x75, "\x73", ""}}},
	{part: "CCS811", driver: "ccs811", kernel: "ccs811", addresses: board.Addresses(0x5a, 0x5b), confidence: Certain, ids: []id{{0x20, "\x81", ""}}},
	// The registers below have settings; compared are their values after power-on.
	{part: "ADS1115", driver: "ads1115", kernel: "ads1115", addresses: board.Addresses(0x48, 0x4b), confidence: Likely, ids: []id{{0x01, "\x85\x83", ""}}},
	{part: "TMP102", driver: "tmp102", kernel: "tmp102", addresses: board.Addresses(0x48, 0x4b), confidence: Likely, ids: []id{{0x01, "\x60\xA0", "\xE7\xDF"}}},
	{part: "MAX17048 battery gauge", driver: "max17043", kernel: "max17048", addresses: []uint16{0x36}, confidence: Likely, ids: []id{{0x08, "\x00\x10", "\xFF\xF0"}}},
	{part: "MAX17043 battery gauge", driver: "max17043", kernel: "max17043", addresses: []uint16{0x36}, confidence: Likely, ids: []id{{0x0C, "\x97\x1C", ""}}},
	{part: "MAX17040 battery gauge", driver: "max17043", kernel: "max17040", addresses: []uint16{0x36}, confidence: Likely, ids: []id{{0x0C, "\x97\x00", ""}}},
	{part: "PCA9685", driver: "pca9685", addresses: board.Addresses(0x40, 0x77), confidence: Likely, ids: []id{{0x02, "\xE2", ""}, {0x03, "\xE4", ""}, {0x04, "\xE8", ""}, {0x05, "\xE0", ""}}},
	{part: "MCP23017", driver: "mcp23017", addresses: board.Addresses(0x20, 0x27), confidence: Likely, ids: []id{{0x00, "\xFF\xFF\x00\x00\x00\x00", ""}, {0x0A, "\x00\x00", "\xC1\xC1"}}},
	{part: "TCA9534", driver: "tca9534", addresses: slices.Concat(board.Addresses(0x20, 0x27), board.Addresses(0x38, 0x3f)), confidence: Likely, ids: []id{{0x01, "\xFF", ""}, {0x02, "\x00", ""}, {0x03, "\xFF", ""}}},
	{part: "SHT4x", driver: "sht4x", kernel: "sht4x", addresses: board.Addresses(0x44, 0x46), confidence: Certain, silent: true, ask: words(2, 0x89)},
	{part: "HDC302x", driver: "hdc302x", kernel: "hdc3020", addresses: board.Addresses(0x44, 0x47), confidence: Certain, silent: true, ask: reads("\x30\x00", 0x37, 0x81)},
	{part: "SHT3x", driver: "sht3x", kernel: "sht3x", addresses: board.Addresses(0x44, 0x45), confidence: Likely, silent: true, ask: words(1, 0xF3, 0x2D)},
	{part: "SCD4x", driver: "scd4x", kernel: "scd40", addresses: board.Addresses(0x62, 0x62), confidence: Certain, silent: true, ask: words(3, 0x36, 0x82)},
	{part: "SGP30", driver: "sgp30", kernel: "sgp30", addresses: board.Addresses(0x58, 0x58), confidence: Certain, silent: true, ask: words(3, 0x36, 0x82)},
	{part: "AHT20", driver: "aht20", kernel: "aht20", addresses: board.Addresses(0x38, 0x38), confidence: Certain, ask: askAHT20},
	{part: "DS2482 1-Wire bridge", driver: "ds18b20", addresses: board.Addresses(0x18, 0x1b), confidence: Likely, ask: askDS2482, behind: thermometers,
		says: "no DS18B20 responds behind it; check the 1-Wire wires. For other 1-Wire parts use its kernel driver; as root: echo ds2482 %#02x > /sys/bus/i2c/devices/%s/new_device"},
}

// chip is an address in use: conn.Begin was called.
type chip struct {
	conn *board.Conn
	addr uint16
}

// matches reports whether the chip is the signature's part.
func (c chip) matches(s signature) (bool, error) {
	if s.ask != nil {
		return s.ask(c)
	}
	for _, id := range s.ids {
		got := make([]byte, len(id.want))
		if err := c.conn.Tx(c.addr, []byte{id.register}, got); err != nil {
			return false, err
		}
		for i := range got {
			mask := byte(0xFF)
			if id.mask != "" {
				mask = id.mask[i]
			}
			if got[i]&mask != id.want[i]&mask {
				return false, nil
			}
		}
	}
	return true, nil
}

// command writes a command, waits, and reads the response.
func (c chip) command(wait time.Duration, answer []byte, bytes ...byte) error {
	if err := c.conn.Tx(c.addr, bytes, nil); err != nil {
		return err
	}
	if err := c.conn.Sleep(wait); err != nil {
		return err
	}
	return c.conn.Tx(c.addr, nil, answer)
}

// words returns a test that a command's response is n words with a CRC each, as of all
// Sensirion parts.
func words(n int, bytes ...byte) func(chip) (bool, error) {
	return func(c chip) (bool, error) {
		answer := make([]byte, 3*n)
		if err := c.command(10*time.Millisecond, answer, bytes...); err != nil {
			return false, err
		}
		for w := range slices.Chunk(answer, 3) {
			if board.CRC8(w[:2]) != w[2] {
				return false, nil
			}
		}
		return true, nil
	}
}

// reads returns a test that a command's response is the word want with its CRC.
func reads(want string, bytes ...byte) func(chip) (bool, error) {
	return func(c chip) (bool, error) {
		answer := make([]byte, 3)
		err := c.command(10*time.Millisecond, answer, bytes...)
		return err == nil && string(answer[:2]) == want && board.CRC8(answer[:2]) == answer[2], err
	}
}

// askAHT20 starts a measurement and checks the CRC of its result.
func askAHT20(c chip) (bool, error) {
	answer := make([]byte, 7)
	err := c.command(80*time.Millisecond, answer, 0xAC, 0x33, 0x00)
	return err == nil && answer[0]&0x80 == 0 && board.CRC8(answer[:6]) == answer[6], err
}

// askDS2482 sets the bridge's read pointer to its configuration, whose upper half reads as
// zero, and back to its status.
func askDS2482(c chip) (bool, error) {
	var settings, status [1]byte
	if err := c.conn.Tx(c.addr, []byte{0xE1, 0xC3}, settings[:]); err != nil {
		return false, err
	}
	err := c.conn.Tx(c.addr, []byte{0xE1, 0xF0}, status[:])
	return err == nil && settings[0]&0xF0 == 0 && settings[0] != status[0], err
}

// Silent reports whether chips of that driver do not acknowledge a read without a command,
// so that a scan cannot tell whether they are connected.
func Silent(driver string) bool {
	return slices.ContainsFunc(signatures, func(s signature) bool { return s.driver == driver && s.silent }) || driver == "am2320"
}
