package kernel

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

// PWM is the YAML of the driver "pwm". With min_pulse and max_pulse it is a servo.
type PWM struct {
	Chip      string        `json:"chip" jsonschema:"the controller: pwmchip0, or its name below /sys/devices such as 1f00098000.pwm, which does not change"`
	Channel   int           `json:"channel,omitempty" jsonschema:"the controller's channel, counted from 0; default 0"`
	Frequency float64       `json:"frequency,omitempty" jsonschema:"pulses per second; default 1000, and 50 for a servo"`
	Period    time.Duration `json:"period,omitempty" jsonschema:"the time from pulse to pulse, instead of frequency"`
	Inverted  bool          `json:"inverted,omitempty" jsonschema:"true if the load is on while the pin is low"`
	MinPulse  time.Duration `json:"min_pulse,omitempty" jsonschema:"a servo's pulse at the lower end of range, such as 1ms"`
	MaxPulse  time.Duration `json:"max_pulse,omitempty" jsonschema:"a servo's pulse at the upper end of range, such as 2ms"`
	Range     *device.Range `json:"range,omitempty" jsonschema:"the allowed percent, default 0..100; a servo's degrees, default 0..180"`
	Safe      device.Value  `json:"safe" jsonschema:"the safe value: off, on or percent; a servo's degrees"`

	root sysfs.Root
}

const (
	pwmChips  = "sys/class/pwm"
	minPeriod = time.Microsecond
	maxPeriod = 10 * time.Second
	minPulse  = 100 * time.Microsecond
	maxPulse  = 5 * time.Millisecond // longer than any servo's
)

var pwmNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^pwmchip[0-9]{1,4}$`) })

func (c *PWM) servo() bool { return c.MinPulse != 0 || c.MaxPulse != 0 }

// period returns the configured period, or the default.
func (c *PWM) period() time.Duration {
	switch {
	case c.Period != 0:
		return c.Period
	case c.Frequency != 0:
		return time.Duration(math.Round(float64(time.Second) / c.Frequency))
	case c.servo():
		return 20 * time.Millisecond
	}
	return time.Millisecond
}

func (c *PWM) limits() device.Range {
	switch {
	case c.Range != nil:
		return *c.Range
	case c.servo():
		return device.Range{Max: 180}
	}
	return device.Range{Max: 100}
}

// Validate finds mistakes without hardware.
func (c *PWM) Validate() error {
	if err := checkFileName("chip", c.Chip); err != nil {
		return err
	}
	limits := c.limits()
	switch {
	case c.Channel < 0 || c.Channel > 999:
		return device.Faultf(device.Invalid, "channel: %d is not a channel; the first is 0", c.Channel)
	case c.Frequency != 0 && c.Period != 0:
		return device.Faultf(device.Invalid, "frequency and period exclude each other; write one of them")
	case c.Frequency < 0 || c.period() < minPeriod || c.period() > maxPeriod:
		return device.Faultf(device.Invalid, "period: %v is outside %v to %v (0.1 to 1000000 pulses per second)", c.period(), minPeriod, maxPeriod)
	case !(limits.Min < limits.Max) || math.Abs(limits.Min) > 1e6 || math.Abs(limits.Max) > 1e6:
		return device.Faultf(device.Invalid, "range: %v is empty; write it like 0..90", limits)
	case c.servo() && (c.MinPulse < minPulse || c.MaxPulse <= c.MinPulse || c.MaxPulse > maxPulse || c.MaxPulse >= c.period()):
		return device.Faultf(device.Invalid, "a servo needs both min_pulse and max_pulse, from %v to %v and shorter than the period of %v, such as 1ms and 2ms", minPulse, maxPulse, c.period())
	case !c.servo() && (limits.Min < 0 || limits.Max > 100):
		return device.Faultf(device.Invalid, "range: %v is outside 0..100 percent; for the degrees of a servo add min_pulse and max_pulse", limits)
	}
	return c.Describe().Validate()
}

// Describe needs no hardware.
func (c *PWM) Describe() device.Description {
	p := device.Point{Name: "level", Kind: device.KindLevel, Unit: "%", Description: "duty cycle", Range: c.limits()}
	model := "PWM output"
	if c.servo() {
		p.Name, p.Unit, p.Description, model = "angle", "deg", "angle of the servo", "servo"
	}
	if p.Safe = c.Safe; !c.servo() && p.Safe.Type() == device.TypeBool {
		p.Safe = device.Number(100 * p.Safe.Number())
	}
	return device.Description{Model: model, Points: []device.Point{p}}
}

// Open finds the channel, which must be exported. It moves nothing. Close sets the safe
// value, and stops the pulses if that is 0 %. A servo needs pulses to keep its safe angle.
func (c *PWM) Open(context.Context) (device.Device, error) {
	if _, err := c.folder(); err != nil {
		return nil, err
	}
	var r reader
	drive := func(_ context.Context, v device.Value) error { return c.set(&r, v) }
	read := func(now device.Value) (device.Value, error) { return c.get(&r, now) }
	rest := func() error { return nil }
	if !c.Inverted && !c.servo() && c.Describe().Points[0].Safe.Number() == 0 {
		rest = c.stop
	}
	return driver.NewOutput(c.Describe(), drive, read, rest), nil
}

// folder finds the channel. It looks it up each time, because the kernel numbers
// controllers in the order in which they appear.
func (c *PWM) folder() (string, error) {
	chip, err := c.controller()
	if err != nil {
		return "", err
	}
	channel := filepath.Join(chip, fmt.Sprintf("pwm%d", c.Channel))
	if _, err := os.Stat(channel); err != nil {
		return "", device.Faultf(device.Offline, "channel %d of %s is not exported; run as root: agentsite prepare, or echo %d > %s", c.Channel, printable(c.Chip), c.Channel, filepath.Join(chip, "export"))
	}
	return channel, nil
}

// controller returns the folder of the channel's controller.
func (c *PWM) controller() (string, error) {
	chip := c.root.Path(pwmChips, c.Chip)
	if !pwmNumber().MatchString(c.Chip) {
		chip = ""
		for _, folder := range c.root.Glob(pwmChips + "/pwmchip*") {
			if deviceOf(folder) == c.Chip {
				chip = folder
			}
		}
	}
	if _, err := os.Stat(chip); err != nil {
		return "", device.Faultf(device.Offline, "the kernel has no PWM controller %s; enable it (on a Raspberry Pi: dtoverlay=pwm in config.txt) and reboot", printable(c.Chip))
	}
	var r reader
	if n, err := r.number(filepath.Join(chip, "npwm")); err == nil && float64(c.Channel) >= n {
		return "", device.Faultf(device.Invalid, "channel: %s has only %v channels, counted from 0", printable(c.Chip), device.Number(n))
	}
	return chip, nil
}

// pulse returns the length of the pulse for a value.
func (c *PWM) pulse(v float64) time.Duration {
	if !c.servo() {
		return time.Duration(math.Round(float64(c.period()) * v / 100))
	}
	limits := c.limits()
	part := (v - limits.Min) / (limits.Max - limits.Min)
	return c.MinPulse + time.Duration(math.Round(part*float64(c.MaxPulse-c.MinPulse)))
}

// set sets the period and polarity if they differ, and then the pulse. The kernel requires this
// order (pwm_apply_state in drivers/pwm/core.c). It refuses every change while the period is 0, a
// pulse longer than the period, and with many controllers a change of polarity while they run.
func (c *PWM) set(r *reader, v device.Value) error {
	folder, err := c.folder()
	if err != nil {
		return err
	}
	w := writer{folder: folder}
	polarity, now := "normal", r.Text(filepath.Join(folder, "polarity"))
	if c.Inverted {
		polarity = "inversed"
	}
	flip := now != polarity && (now != "" || c.Inverted) // without the file, the polarity is fixed
	if flip && r.Text(filepath.Join(folder, "enable")) != "0" {
		w.write("enable", "0")
	}
	period := c.period()
	if now, err := r.number(filepath.Join(folder, "period")); err != nil || now != float64(period) {
		if pulse, err := r.number(filepath.Join(folder, "duty_cycle")); err == nil && pulse > float64(period) {
			w.write("duty_cycle", "0")
		}
		w.write("period", nanoseconds(period))
	}
	if flip {
		w.write("polarity", polarity)
	}
	w.write("duty_cycle", nanoseconds(c.pulse(v.Number())))
	if r.Text(filepath.Join(folder, "enable")) != "1" {
		w.write("enable", "1")
	}
	return w.err
}

// writer writes files of one folder until a write fails.
type writer struct {
	folder string
	err    error
}

func (w *writer) write(name, text string) {
	if w.err == nil {
		w.err = write(filepath.Join(w.folder, name), text)
	}
}

func nanoseconds(d time.Duration) string { return strconv.FormatInt(d.Nanoseconds(), 10) }

// get reads the channel back. A stopped channel is at 0 %; the angle of a servo without
// pulses is unknown.
func (c *PWM) get(r *reader, now device.Value) (device.Value, error) {
	folder, err := c.folder()
	if err != nil {
		return device.Value{}, err
	}
	var values [3]float64
	for i, name := range []string{"enable", "period", "duty_cycle"} {
		if values[i], err = r.number(filepath.Join(folder, name)); err != nil {
			return device.Value{}, device.Faultf(device.Offline, "the PWM channel cannot be read: %w", err)
		}
	}
	enabled, period, pulse := values[0] != 0, values[1], values[2]
	switch {
	case !now.IsZero() && enabled && period == float64(c.period()) && pulse == float64(c.pulse(now.Number())):
		return now, nil
	case c.servo() && (!enabled || pulse == 0):
		return device.Value{}, device.Faultf(device.Offline, "the servo gets no pulses, so its angle is unknown")
	case c.servo():
		limits := c.limits()
		part := (pulse - float64(c.MinPulse)) / float64(c.MaxPulse-c.MinPulse)
		return device.Number(device.Tidy(limits.Min + part*(limits.Max-limits.Min))), nil
	case !enabled && c.Inverted:
		return device.Value{}, device.Faultf(device.Offline, "the PWM channel is inverted and stopped, so the state of its load is unknown")
	case !enabled || period <= 0:
		return device.Number(0), nil
	}
	return device.Number(device.Tidy(100 * pulse / period)), nil
}

// stop ends the pulses. It is called after the value is set to 0 %.
func (c *PWM) stop() error {
	folder, err := c.folder()
	if err != nil {
		return err
	}
	return write(filepath.Join(folder, "enable"), "0")
}
