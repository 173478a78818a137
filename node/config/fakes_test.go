package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// The drivers of the tests: one output, several, none, one whose points only its
// hardware knows, and one with two measurements.
func fakes() []driver.Driver {
	return []driver.Driver{
		{Name: "relay", Doc: "one switch", Config: func() driver.Config { return &relay{Bus: "gpio"} }},
		{Name: "multi", Doc: "two outputs and a sensor", Config: func() driver.Config { return &multi{} }},
		{Name: "thermo", Doc: "a sensor", Config: func() driver.Config { return &thermo{Address: 0x76, Offset: -0.5} }},
		{Name: "servo", Doc: "one level", Config: func() driver.Config { return &servo{Range: device.Range{Min: 0, Max: 180}, Pulse: time.Millisecond} }},
		{Name: "pair", Doc: "two measurements", Config: func() driver.Config { return &pair{} }},
		{Name: "probe", Doc: "known only once opened", Config: func() driver.Config { return &probe{} }},
	}
}

type unopened struct{}

func (unopened) Open(context.Context) (device.Device, error) { return nil, errors.New("not in a test") }

type pin string

func (p *pin) UnmarshalText(text []byte) error {
	if !strings.HasPrefix(string(text), "GPIO") {
		return fmt.Errorf("takes a pin such as GPIO17, not %q", text)
	}
	*p = pin(text)
	return nil
}

type relay struct {
	unopened
	Pin       pin    `json:"pin" jsonschema:"BCM number of the pin"`
	Bus       string `json:"bus"`
	ActiveLow bool   `json:"active_low,omitempty"`
}

func (*relay) Describe() device.Description {
	return device.Description{Model: "relay", Points: []device.Point{{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
}

func (r *relay) Resources() []driver.Resource { return []driver.Resource{{Name: string(r.Pin)}} }

type multi struct {
	unopened
	Seed   int8              `json:"seed,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Steps  []step            `json:"steps,omitempty"`
}

type step struct {
	After time.Duration `json:"after"`
	Gain  *float64      `json:"gain,omitempty"`
}

func (*multi) Describe() device.Description {
	return device.Description{Model: "multi", Points: []device.Point{
		{Name: "heater", Kind: device.KindSwitch, Safe: device.Bool(false)},
		{Name: "vent", Kind: device.KindLevel, Range: device.Range{Min: 0, Max: 100}, Safe: device.Number(0)},
		{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel"},
	}}
}

type i2c struct {
	Bus string `json:"bus,omitempty" jsonschema:"the I2C bus"`
}

type thermo struct {
	unopened
	i2c
	Address uint8   `json:"address"`
	Offset  float64 `json:"offset"`
}

func (t *thermo) Validate() error {
	if t.Address != 0x76 && t.Address != 0x77 {
		return device.Faultf(device.Invalid, "address is 0x76 or 0x77, not %#x", t.Address)
	}
	return nil
}

func (t *thermo) Resources() []driver.Resource {
	return []driver.Resource{{Name: fmt.Sprintf("i2c-1/%#x", t.Address)}, {Name: "GPIO2", Shared: "i2c-1"}, {Name: "GPIO3", Shared: "i2c-1"}}
}

func (*thermo) Describe() device.Description {
	return device.Description{Model: "thermo", Points: []device.Point{{Name: "temperature", Kind: device.KindMeasurement, Unit: "Cel"}}}
}

type servo struct {
	unopened
	Range device.Range  `json:"range" jsonschema:"the angles that the servo turns to"`
	Pulse time.Duration `json:"pulse"`
}

func (s *servo) Describe() device.Description {
	return device.Description{Model: "servo", Points: []device.Point{{Name: "angle", Kind: device.KindLevel, Range: s.Range, Safe: device.Number(s.Range.Min)}}}
}

type probe struct{ unopened }

type pair struct{ unopened }

func (*pair) Describe() device.Description {
	return device.Description{Model: "pair", Points: []device.Point{
		{Name: "volts", Kind: device.KindMeasurement, Unit: "V", Range: device.Range{Min: 0, Max: 3.3}},
		{Name: "amps", Kind: device.KindMeasurement, Unit: "A"},
		{Name: "door", Kind: device.KindState}, {Name: "bell", Kind: device.KindEvent},
	}}
}
