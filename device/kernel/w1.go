package kernel

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"agentsite/device"
	"agentsite/device/sysfs"

	"periph.io/x/conn/v3/onewire"
)

// W1 is the YAML of the driver "w1".
type W1 struct {
	ID string `json:"id,omitempty" jsonschema:"the thermometer's number, such as 28-0316a2795c1f; may be left out if there is only one"`

	root sysfs.Root
}

const w1Devices = "sys/bus/w1/devices"

// w1Families are the parts that w1_therm supports (Documentation/w1/slaves/w1_therm.rst).
var w1Families = map[string]string{"10": "DS18S20", "22": "DS1822", "28": "DS18B20", "3b": "DS1825", "42": "DS28EA00"}

var w1ID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(10|22|28|3b|42)-[0-9a-f]{12}$`) })

// Validate finds mistakes without hardware.
func (c *W1) Validate() error {
	if c.ID != "" && !w1ID().MatchString(c.ID) {
		return device.Faultf(device.Invalid, "id: %q is not a 1-Wire thermometer; write its folder in /sys/bus/w1/devices, such as 28-0316a2795c1f", printable(c.ID))
	}
	return nil
}

// Open finds the thermometer; it starts no conversion. Without an id there must be exactly
// one.
func (c *W1) Open(context.Context) (device.Device, error) {
	id := c.ID
	s := &sensor{
		find: func(*reader) (string, error) { return c.pick(id) },
		same: func(_ *reader, folder string) bool {
			_, err := os.Stat(folder)
			return err == nil
		},
	}
	folder, err := s.find(&s.reader)
	if err != nil {
		return nil, err
	}
	id = filepath.Base(folder) // a thermometer that is added later is another device
	// w1_slave has the scratchpad and its CRC; temperature has only the result.
	file := attribute{"w1_slave", parseW1}
	if _, err := os.Stat(filepath.Join(folder, file.name)); err != nil {
		file = attribute{"temperature", parseW1Temperature}
	}
	s.attributes = []attribute{file}
	s.channels = []channel{{
		point: w1Point,
		times: 1, per: 1000, slack: 2, value: 0, offset: none, scale: none, fault: none, // the accuracy is 2 degrees at the ends (page 3)
	}}
	return s.open(w1Families[id[:2]], folder)
}

// w1Point is the point of each thermometer: "from -55°C to +125°C" (DS18B20 datasheet, page 1); the others
// have the same range.
var w1Point = device.Point{
	Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel", Description: "temperature",
	Range: device.Range{Min: -55, Max: 125},
}

// Describe returns the thermometer's point. Without an id its model is known only when it is open.
func (c *W1) Describe() device.Description {
	model := "1-Wire thermometer"
	if c.ID != "" {
		model = w1Families[c.ID[:2]]
	}
	return device.Description{Model: model, Points: []device.Point{w1Point}}
}

func (c *W1) pick(id string) (string, error) {
	var found []string
	for _, folder := range c.root.Glob(w1Devices + "/*") {
		if name := filepath.Base(folder); w1ID().MatchString(name) {
			if name == id {
				return folder, nil
			}
			found = append(found, name)
		}
	}
	switch {
	case id != "":
		return "", device.Faultf(device.Offline, "no thermometer %s on the 1-Wire bus (it has %s); check its wires and the 4.7 kΩ resistor", id, listed(found))
	case len(found) == 0:
		return "", device.Faultf(device.Offline, "no thermometer on the 1-Wire bus; enable the bus (dtoverlay=w1-gpio in config.txt), and check the wires and the 4.7 kΩ resistor")
	case len(found) > 1:
		return "", device.Faultf(device.Invalid, "%d thermometers on the 1-Wire bus; write the id of one of them: %s", len(found), listed(found))
	}
	return c.root.Path(w1Devices, found[0]), nil
}

var (
	errW1None    = errors.New("no response with a correct CRC; check its wires, their length and the 4.7 kΩ resistor")
	errW1Form    = errors.New("not in the format of w1_therm")
	errW1CRC     = errors.New("wrong CRC; the wire is too long, disturbed or without its 4.7 kΩ resistor")
	errW1Short   = errors.New("all bits are zero; the data wire is short-circuited to ground")
	errW1PowerOn = errors.New("85 °C is the value after power-on, before a measurement; check its supply")
)

// powerOn, in thousandths of a degree, is the scratchpad's value after power-on (DS18B20
// datasheet, table 1). Byte 6 is then 0x0c, and differs after a conversion to 85 °C, which
// the kernel tests in the same way (W1_THERM_CHECK_RESULT, w1_therm.rst).
const (
	powerOn     = 85000
	powerOnByte = 0x0c
)

// parseW1 parses the two lines of w1_slave:
//
//	50 05 4b 46 7f ff 0c 10 1c : crc=1c YES
//	50 05 4b 46 7f ff 0c 10 1c t=85000
//
// After a wrong CRC the second line repeats the last good bytes, so that the first line
// decides. The file is empty after repeated errors, mostly of the CRC.
func parseW1(b []byte) (float64, error) {
	first, second, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	if len(first) == 0 {
		return 0, errW1None
	}
	pad, verdict, ok := bytes.Cut(first, []byte(":"))
	if !ok {
		return 0, errW1Form
	}
	var bits [9]byte
	pad = bytes.ReplaceAll(pad, []byte(" "), nil)
	if hex.DecodedLen(len(pad)) != len(bits) || len(pad)%2 != 0 {
		return 0, errW1Form
	}
	if _, err := hex.Decode(bits[:], pad); err != nil {
		return 0, errW1Form
	}
	if !bytes.HasSuffix(bytes.TrimSpace(verdict), []byte("YES")) || !onewire.CheckCRC(bits[:]) {
		return 0, errW1CRC
	}
	if bits == [9]byte{} { // its CRC is right
		return 0, errW1Short
	}
	_, t, ok := bytes.Cut(second, []byte("t="))
	if !ok {
		return 0, errW1Form
	}
	milli, err := parseNumber(t)
	if err == nil && milli == powerOn && bits[6] == powerOnByte {
		err = errW1PowerOn
	}
	return milli, err
}

// parseW1Temperature parses the file temperature, in which a measured 85 °C cannot be
// distinguished from the power-on value.
func parseW1Temperature(b []byte) (float64, error) {
	milli, err := parseNumber(b)
	if err == nil && milli == powerOn {
		err = errW1PowerOn
	}
	return milli, err
}
