package sim

import (
	"context"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/device/driver"
)

// Driver returns the driver "sim".
func Driver() driver.Driver {
	return driver.Driver{
		Name:   "sim",
		Doc:    "a simulated device: a greenhouse, a climate sensor, a relay, a dimmer or an emergency stop",
		Config: func() driver.Config { return &Config{Model: "greenhouse", Seed: 1, Speed: 1} },
	}
}

// maxSpeed is an hour per second.
const maxSpeed = 3600

// Config is the YAML of the driver.
type Config struct {
	Model       string  `json:"model,omitempty" jsonschema:"the simulated device: greenhouse, climate, relay, dimmer or stop-button; default greenhouse"`
	Seed        uint64  `json:"seed,omitempty" jsonschema:"seed of the noise and of the times at which the button is pressed; default 1"`
	Speed       float64 `json:"speed,omitempty" jsonschema:"simulated seconds per second, more than 0 and at most 3600; default 1"`
	OutputsFile string  `json:"outputs_file,omitempty" jsonschema:"a file with the outputs, a line each of name, value and the time of writing in nanoseconds since 1970; another value written there moves the output; for tests, and refused by releases"`
	PressedFile string  `json:"pressed_file,omitempty" jsonschema:"the stop-button is pressed while this file exists; default: never"`
}

// model is a simulated device.
type model struct {
	name     string
	describe func() device.Description
	open     func(*Config) (device.Device, error)
}

func models() []model {
	return []model{
		{"greenhouse", describeGreenhouse, openGreenhouse},
		{"climate", describeClimate, openClimate},
		{"relay", describeRelay, openRelay},
		{"dimmer", describeDimmer, openDimmer},
		{stopButtonModel, describeStopButton, openStopButton},
	}
}

func (c *Config) model() (model, error) {
	all := models()
	if i := slices.IndexFunc(all, func(m model) bool { return m.name == c.Model }); i >= 0 {
		return all[i], nil
	}
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	return model{}, device.Faultf(device.Invalid, "model: no model %q; use one of %s", c.Model, strings.Join(names, ", "))
}

// Validate refuses an unknown model, a speed out of range, and keys that this build does not have.
func (c *Config) Validate() error { return c.validate(testKeys) }

func (c *Config) validate(testKeys bool) error {
	if c.OutputsFile != "" && !testKeys {
		return device.Faultf(device.Invalid, "outputs_file: this is for tests, and a release does not have it; remove the line")
	}
	if !(c.Speed > 0 && c.Speed <= maxSpeed) { // a NaN too
		return device.Faultf(device.Invalid, "speed: %v is out of range; use more than 0 and at most %d", c.Speed, maxSpeed)
	}
	_, err := c.model()
	return err
}

// Describe returns the model's points; none for an unknown model.
func (c *Config) Describe() device.Description {
	m, err := c.model()
	if err != nil {
		return device.Description{}
	}
	return m.describe()
}

// Open returns the device with its outputs at safe. It fails if the outputs file cannot be
// written.
func (c *Config) Open(context.Context) (device.Device, error) {
	m, err := c.model()
	if err != nil {
		return nil, err
	}
	return m.open(c)
}
