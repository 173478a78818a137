package scan

import "slices"

// byteEffect is the effect of a single byte that is written to a part.
type byteEffect string

const (
	pointer byteEffect = "pointer" // selects a register: nothing changes until more is written
	acts    byteEffect = "acts"    // changes an output or is a command
	// repeats is the same as acts, for a part that a long read identifies because its bytes
	// repeat.
	repeats byteEffect = "repeats"
)

// part is a chip, its possible addresses, and the effect of a single byte on it.
type part struct {
	name     string
	driver   string // of device/chip; "" for none
	kernel   string // name of the kernel driver; "" for none
	from, to uint16
	byte     byteEffect
	source   string
}

// parts are the parts that act on a single byte, and others that share their addresses. All
// possible addresses count, however rare. Of the parts at one address the most common comes
// first.
var parts = []part{
	{"PCF8574", "pcf8574", "", 0x20, 0x27, acts, "NXP, PCF8574; PCF8574A: each byte written goes to the pins"},
	{"HD44780 display", "hd44780", "", 0x20, 0x27, acts, "a PCF8574 between bus and display"},
	{"PCF8575", "pcf8575", "", 0x20, 0x27, acts, "NXP, PCF8575: the first byte goes to the first eight pins"},
	{"SSD1306 display", "ssd1306", "", 0x3c, 0x3d, acts, "Solomon Systech, SSD1306: control byte"},
	{"AHT20", "aht20", "aht20", 0x38, 0x38, acts, "Aosong, AHT20"},
	{"PCF8574A", "pcf8574", "", 0x38, 0x3f, acts, "NXP, PCF8574; PCF8574A: each byte written goes to the pins"},
	{"HD44780 display", "hd44780", "", 0x38, 0x3f, acts, "a PCF8574A between bus and display"},
	{"BH1750", "bh1750", "bh1750", 0x23, 0x23, acts, "ROHM, BH1750FVI: opcodes of one byte"},
	{"BH1750", "bh1750", "bh1750", 0x5c, 0x5c, acts, "ROHM, BH1750FVI: opcodes of one byte"},
	{"AM2320", "am2320", "", 0x5c, 0x5c, acts, "Aosong, AM2320"},
	{"ADS1115", "ads1115", "ads1115", 0x48, 0x4b, pointer, "TI SBAS444, ADS111x: address pointer register"},
	{"TMP102", "tmp102", "tmp102", 0x48, 0x4b, pointer, "TI SBOS397, TMP102: pointer register"},
	{"LM75", "", "lm75", 0x48, 0x4f, pointer, "TI SNOS808, LM75: pointer register"},
	{"PCF8591", "", "", 0x48, 0x4f, acts, "NXP, PCF8591, section 8.2: bit 6 of the control byte turns the analog output on and off"},
	{"MAX9744 amplifier", "", "", 0x49, 0x4b, acts, "Maxim, MAX9744, page 18: the byte is the volume"},
	{"DAC5571", "", "", 0x4c, 0x4d, acts, "TI SLAS405, DAC5571: the first byte has the power-down bits"},
	{"DS2482 1-Wire bridge", "", "", 0x18, 0x1b, acts, "Maxim, DS2482-100: commands of one byte"},
	{"MCP9808", "mcp9808", "jc42", 0x18, 0x1f, pointer, "Microchip DS25095, MCP9808: register pointer"},
	{"MCP4725", "mcp4725", "", 0x60, 0x67, acts, "Microchip DS22039, MCP4725: the first byte of a fast write has the power-down bits"},
	{"MCP4728", "", "", 0x60, 0x67, acts, "Microchip DS22187, MCP4728: as MCP4725"},
	{"SCD4x", "scd4x", "scd40", 0x62, 0x62, acts, "Sensirion, SCD4x: commands of two bytes"},
	{"PCA9548 multiplexer", "", "", 0x70, 0x77, repeats, "NXP, PCA9548A: the byte is the channels; PCA9540 to PCA9547 and TCA9548A alike"},
	{"MS5611", "", "ms5611", 0x76, 0x77, repeats, "TE Connectivity, MS5611-01BA03: commands of one byte; reads zeros when it was told none"},
	{"HT16K33 display", "", "", 0x70, 0x77, repeats, "Holtek, HT16K33: commands of one byte"},
	{"AD5241", "", "", 0x2c, 0x2f, acts, "Analog Devices, AD5241: the first byte can shut the wiper down"},
	{"MCP4017", "", "", 0x2f, 0x2f, acts, "Microchip DS22147, MCP4017: the byte is the wiper"},
	{"INA219", "ina219", "ina219", 0x40, 0x4f, pointer, "TI SBOS448, INA219: register pointer; INA226 and INA260 alike"},
	{"PCA9685", "pca9685", "", 0x40, 0x7f, pointer, "NXP, PCA9685: control register"},
	{"SHT4x", "sht4x", "sht4x", 0x44, 0x46, acts, "Sensirion, SHT4x: commands of one byte, to measure and to heat"},
	{"PT2258 amplifier", "", "", 0x40, 0x40, acts, "Princeton, PT2258, page 7 and on: CODE1 and CODE2; each byte is a step of volume"},
	{"PT2258 amplifier", "", "", 0x42, 0x42, acts, "the same"},
	{"PT2258 amplifier", "", "", 0x44, 0x44, acts, "the same"},
	{"PT2258 amplifier", "", "", 0x46, 0x46, acts, "the same"},
	{"MCP23017", "mcp23017", "", 0x20, 0x27, pointer, "Microchip DS20001952, MCP23017: register address"},
	{"TCA9534", "tca9534", "", 0x20, 0x27, pointer, "TI SCPS197, TCA9534: command byte, a register's number; TCA9535 and TCA9555 alike"},
	{"MAX17043 battery gauge", "max17043", "max17040", 0x36, 0x36, pointer, "Maxim 19-4811, MAX17043: memory address; " +
		"MAX17040 and MAX17048 alike"},
	{"AS5600", "", "as5600", 0x36, 0x36, pointer, "ams, AS5600: word address"},
	{"seesaw soil sensor", "", "", 0x36, 0x39, pointer, "Adafruit, seesaw: a register is two bytes, and one alone " +
		"selects nothing"},
	{"PiJuice UPS board", "pijuice", "", 0x14, 0x14, pointer, "PiSupply/PiJuice, pijuice.py: a command of one byte is " +
		"read; writes have data and a checksum"},
	{"AT24 memory", "", "", 0x50, 0x57, pointer, "Microchip, AT24C32: an address alone begins no write"},
	{"DS3231 clock", "", "", 0x68, 0x68, pointer, "Maxim 19-5170, DS3231: register pointer"},
	{"MCP3424", "", "", 0x68, 0x6f, pointer, "Microchip DS22088, MCP342x: the byte is the converter's settings; it has no output"},
}

// Knows reports whether a scan names the parts of a driver of device/chip.
func Knows(driver string) bool {
	return slices.ContainsFunc(signatures, func(s signature) bool { return s.driver == driver }) ||
		slices.ContainsFunc(parts, func(p part) bool { return p.driver == driver })
}

// partsAt returns the parts that can have an address.
func partsAt(addr uint16) []part {
	var here []part
	for _, p := range parts {
		if addr >= p.from && addr <= p.to {
			here = append(here, p)
		}
	}
	return here
}
