package kernel

import "agentsite/device"

// iioType describes the point of one type of channel.
type iioType struct {
	name       string // of the point; "" for the type's name
	unit       string // a UCUM code
	times, per float64
	doc        string
	limits     device.Range
	slack      float64
	asIs       bool // without a scale, a raw value is in the ABI's unit
}

// iioTypes are the units of Documentation/ABI/testing/sysfs-bus-iio. The comment before a
// line quotes that file about the value after offset and scale. Other types of
// include/uapi/linux/iio/types.h are not read.
var iioTypes = map[string]iioType{
	// "milli degrees Celsius"
	"temp": {name: "temperature", unit: "Cel", times: 1, per: 1000, doc: "temperature", limits: absolute},
	// "milli percent"; the slack is for sensors whose raw result has to be cropped (Sensirion, SHT4x datasheet, section 4.6: -6 to 119)
	"humidityrelative": {name: "humidity", unit: "%", times: 1, per: 1000, doc: "relative humidity", limits: device.Range{Max: 100}, slack: 20},
	// "kilopascal"
	"pressure": {unit: "Pa", times: 1000, per: 1, doc: "pressure"},
	// "lux"
	"illuminance": {unit: "lx", times: 1, per: 1, doc: "brightness", limits: device.Range{Max: 1e6}},
	// "Unit-less light intensity"; "multiplying intensity by intensity_scale does not yield value with any standardized unit"
	"intensity": {unit: "1", times: 1, per: 1, doc: "intensity of light, in no unit", asIs: true},
	// "UV index values range from 0 (low) to >=11 (extreme)"
	"uvindex": {unit: "1", times: 1, per: 1, doc: "UV index", asIs: true},
	// include/uapi/linux/iio/types.h has the name only; the drivers use kelvins
	"cct": {unit: "K", times: 1, per: 1, doc: "colour temperature of the light"},
	// "millivolts"
	"voltage":    {unit: "V", times: 1, per: 1000, doc: "voltage"},
	"altvoltage": {unit: "V", times: 1, per: 1000, doc: "alternating voltage"},
	// "milliamps. If no offset or scale is present, output should be considered as processed"
	"current": {unit: "A", times: 1, per: 1000, doc: "current", asIs: true},
	// "milliwatts"
	"power": {unit: "W", times: 1, per: 1000, doc: "power"},
	// "Joules"
	"energy": {unit: "J", times: 1, per: 1, doc: "energy"},
	// "ohms"
	"resistance": {unit: "Ohm", times: 1, per: 1, doc: "resistance"},
	// "nanofarads"
	"capacitance": {unit: "nF", times: 1, per: 1, doc: "capacitance"},
	// "m/s^2"
	"accel":   {unit: "m/s2", times: 1, per: 1, doc: "acceleration"},
	"gravity": {unit: "m/s2", times: 1, per: 1, doc: "gravity"},
	// "radians per second"
	"anglvel": {unit: "rad/s", times: 1, per: 1, doc: "speed of rotation"},
	// "radians"
	"angl":      {unit: "rad", times: 1, per: 1, doc: "angle"},
	"deltaangl": {unit: "rad", times: 1, per: 1, doc: "change of the angle since the last sample"},
	"phase":     {unit: "rad", times: 1, per: 1, doc: "difference of phase"},
	// "meters per second"
	"deltavelocity": {unit: "m/s", times: 1, per: 1, doc: "change of the speed since the last sample"},
	// "degrees"
	"incli": {unit: "deg", times: 1, per: 1, doc: "inclination"},
	// "Gauss"; one is 100 µT
	"magn": {unit: "uT", times: 100, per: 1, doc: "magnetic field"},
	// "meters"
	"distance": {unit: "m", times: 1, per: 1, doc: "distance"},
	// "Often these sensors are unit less … Higher proximity measurements indicate closer objects … Units after application of scale and offset are meters"
	"proximity": {unit: "m", times: 1, per: 1, doc: "nearness"},
	// "milli percents from the pad's size"
	"positionrelative": {unit: "%", times: 1, per: 1000, doc: "position"},
	// "percents"; 1 % is 10000 ppm
	"concentration": {unit: "[ppm]", times: 10000, per: 1, doc: "concentration", limits: device.Range{Max: 1e6}},
	// "ug / m3"
	"massconcentration": {unit: "ug/m3", times: 1, per: 1, doc: "particles in the air", asIs: true},
	// "pH reading … as a negative base-10 logarithm of hydrodium ions"
	"ph": {unit: "[pH]", times: 1, per: 1, doc: "acidity", limits: device.Range{Min: -2, Max: 16}},
	// "siemens per meter"
	"electricalconductivity": {unit: "S/m", times: 1, per: 1, doc: "electric conductivity"},
	// "number of steps taken by the user"
	"steps": {unit: "1", times: 1, per: 1, doc: "steps", asIs: true},
}

// quirks are the units of drivers that do not follow the ABI, by device and type.
var quirks = map[string]struct{ times, per float64 }{
	// drivers/iio/chemical/bme680_core.c, bme680_read_humid: percent, not milli percent
	"bme680 humidityrelative": {1, 1},
}

// limited is a range and the tolerance beyond it.
type limited struct {
	limits device.Range
	slack  float64
}

// chipLimits are the measuring ranges of chips, with their accuracy as the tolerance, as in
// device/chip. The ABI has no ranges.
var chipLimits = map[string]map[string]limited{
	"bme280": bosch, "bmp280": bosch, "bmp180": bosch, "bmp085": bosch, "bme680": bosch,
}

// bosch is BST-BME280-DS002 (sections 1.3 and 1.4), BST-BMP180-DS000 (section 1) and
// BST-BME680-DS001 (section 1), in degrees and pascals.
var bosch = map[string]limited{
	"temp":     {device.Range{Min: -40, Max: 85}, 2},
	"pressure": {device.Range{Min: 30000, Max: 110000}, 400},
}
