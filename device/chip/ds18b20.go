package chip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/onewire"
	"periph.io/x/devices/v3/ds248x"
)

// ds18b20Config is the YAML of ds18b20: thermometers on the 1-Wire bus of a DS2482 or DS2483.
// (Those on a GPIO have a kernel driver: device/kernel, "w1".) All on one bridge are one device: a
// conversion is for all of them, and the wire has to be idle meanwhile.
//
// The bridge is periph's; its adapter of the thermometer is not used. That writes its resolution
// into the thermometer's EEPROM. It means to refuse the 85 degrees of a thermometer that lost its
// supply, but compares them with 85 kelvins.
type ds18b20Config struct {
	board.I2C
	Sensors []ds18b20Sensor `json:"sensors,omitempty" jsonschema:"a name and an id for each thermometer; not needed where there is only one"`
}

type ds18b20Sensor struct {
	Name string `json:"name" jsonschema:"the point's name, such as floor"`
	ID   string `json:"id" jsonschema:"the thermometer's number, such as 28-0316a2795c1f"`
}

// The kernel writes the family and, from its highest byte on, the number between
// that and the CRC.
var ds18b20ID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^28-[0-9a-f]{12}$`) })

const ds18b20Family = 0x28

// Validate finds mistakes without hardware.
func (c *ds18b20Config) Validate() error {
	seen := make(map[string]bool)
	for _, s := range c.Sensors {
		switch {
		case !ds18b20ID().MatchString(s.ID):
			return device.Faultf(device.Invalid, "sensors: %.40s: id: %.40q is not a DS18B20; its number is like 28-0316a2795c1f", s.Name, s.ID)
		case seen[s.ID]:
			return device.Faultf(device.Invalid, "sensors: %.40s: id: %s is written twice", s.Name, s.ID)
		}
		seen[s.ID] = true
	}
	if err := c.I2C.Validate(); err != nil {
		return err
	}
	return c.Describe().Validate()
}

// The range is that of Maxim's DS18B20 datasheet (19-7487, page 1).
func (c *ds18b20Config) Describe() device.Description {
	d := device.Description{Model: "DS18B20"}
	for _, s := range c.Sensors {
		d.Points = append(d.Points, measures(s.Name, "Cel", "temperature", -55, 125))
	}
	if len(c.Sensors) == 0 {
		d.Points = append(d.Points, measures("temperature", "Cel", "temperature", -55, 125))
	}
	return d
}

const (
	ds18b20Longest = 750 * time.Millisecond // of a conversion to 12 bits
	ds18b20Degrees = 2                      // its accuracy at the ends of the range (page 3)
)

// Open finds the bridge and, where none is written, the only thermometer. One that
// is written and does not answer is a fault of its point.
func (c *ds18b20Config) Open(ctx context.Context) (device.Device, error) {
	var all []onewire.Address // in the order of the points
	for _, s := range c.Sensors {
		all = append(all, address(s.ID))
	}
	var bridge *ds248x.Dev
	return openSensor(ctx, c.I2C, c.Describe(), func(dev *i2cChip) sensor {
		return sensor{
			configure: func() {
				// of 0x18 to 0x1B periph takes the first two only
				bridge, dev.err = ds248x.New(board.Fixed(dev.conn, c.Address), 0x18, &ds248x.DefaultOpts)
				if dev.err == nil && len(all) == 0 { // a thermometer that is added later is another device
					all, dev.err = only(bridge)
				}
			},
			read: func(out *driver.Sample) {
				// all at once: skip ROM, convert; the strong pull-up is for those without a supply
				dev.err = onWire(bridge.Tx([]byte{0xCC, 0x44}, nil, onewire.StrongPullup))
				dev.sleep(ds18b20Longest)
				for _, a := range all {
					if dev.err == nil {
						dev.err = tellDS18B20(&onewire.Dev{Bus: bridge, Addr: a}, out)
					}
				}
			},
		}
	})
}

// onWire returns an error of the bridge with advice about the wire behind it.
func onWire(err error) error {
	if short, ok := errors.AsType[interface {
		error
		onewire.ShortedBusError
	}](err); ok && short.IsShorted() {
		return device.Faultf(device.Offline, "the 1-Wire bus is short-circuited; check the data wire and the orientation of the thermometers")
	}
	if _, ok := errors.AsType[interface {
		error
		onewire.BusError
	}](err); ok {
		return device.Faultf(device.Offline, "no thermometer responds on the 1-Wire bus; check its wires: %w", err)
	}
	return err
}

// only is the thermometer of a bus that has one.
func only(bus onewire.Bus) ([]onewire.Address, error) {
	found, err := bus.Search(false)
	if err != nil {
		return nil, onWire(err)
	}
	var ids []string
	var all []onewire.Address
	for _, a := range found {
		if a&0xFF == ds18b20Family {
			ids, all = append(ids, idOf(a)), append(all, a)
		}
	}
	switch len(all) {
	case 1:
		return all, nil
	case 0:
		return nil, device.Faultf(device.Offline, "no DS18B20 on the 1-Wire bus; check its wires")
	}
	return nil, device.Faultf(device.Invalid, "there are %d thermometers on the 1-Wire bus; give each a name: sensors: [{ name: …, id: %s }]", len(all), strings.Join(ids, " }, { name: …, id: "))
}

// address is the number of an id that Validate let pass, with its CRC on top.
func address(id string) onewire.Address {
	family, _ := strconv.ParseUint(id[:2], 16, 8)
	number, _ := strconv.ParseUint(id[3:], 16, 48)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], number<<8|family)
	b[7] = onewire.CalcCRC(b[:7])
	return onewire.Address(binary.LittleEndian.Uint64(b[:]))
}

func idOf(a onewire.Address) string {
	return fmt.Sprintf("%02x-%012x", byte(a), uint64(a)<<8>>16)
}

// tellDS18B20 reads one scratchpad. An error of one thermometer is no error of the others.
func tellDS18B20(dev *onewire.Dev, out *driver.Sample) error {
	var pad [9]byte
	if err := dev.Tx([]byte{0xBE}, pad[:]); err != nil {
		return onWire(err)
	}
	raw := binary.LittleEndian.Uint16(pad[:])
	switch {
	case pad == [9]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}:
		out.Fault("the thermometer " + idOf(dev.Addr) + " does not answer; check its wires")
	case !onewire.CheckCRC(pad[:]):
		out.Fault("the CRC of the thermometer " + idOf(dev.Addr) + " is wrong; the wire is too long or disturbed")
	case pad == [9]byte{}: // its CRC is right
		out.Fault("all bits are zero; the data wire is short-circuited to ground")
	// after power-on; byte 6 is something else after a conversion to 85 degrees
	// (the kernel's own test: W1_THERM_CHECK_RESULT, w1_therm.rst)
	case raw == 0x0550 && pad[6] == 0x0C:
		out.Fault("85 °C is the value before the first measurement; check its supply")
	default:
		unused := 3 - pad[4]>>5&3 // bits, with 9 to 12 of them
		out.Separate(float64(int16(raw)>>unused<<unused)/16, ds18b20Degrees)
	}
	return nil
}
