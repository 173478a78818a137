package gpio

import (
	"context"
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

// configured is each driver as the tests use it.
func configured(b *board.Board) map[string]driver.Config {
	all := map[string]driver.Config{}
	for _, d := range Drivers(b) {
		c := d.Config()
		switch c := c.(type) {
		case *Switch:
			c.Pin = "GPIO17"
		case *Dimmer:
			c.Pin = "GPIO17"
		case *Servo:
			c.Pin = "GPIO17"
		case *Motor:
			c.Forward, c.Backward, c.DeadTime = "GPIO17", "GPIO18", time.Millisecond
		case *Input:
			c.Pin = "GPIO17"
		case *Encoder:
			c.A, c.B = "GPIO17", "GPIO18"
		case *Distance:
			c.Trigger, c.Echo = "GPIO17", "GPIO18"
		}
		all[d.Name] = c
	}
	return all
}

func TestConformance(t *testing.T) {
	for _, d := range Drivers(board.New()) {
		t.Run(d.Name, func(t *testing.T) {
			var chip *boardtest.Chip
			o := devicetest.Options{Level: func(point string) device.Value { return witness(chip, d.Name) }}
			if d.Name == "servo" { // an angle is not to be seen at once: see TestServo
				o.Level = nil
			}
			o.Run(t, func(t *testing.T) device.Device {
				chip = boardtest.Header()
				if d.Name == "hc-sr04" {
					ultrasonic(chip, time.Millisecond)
				}
				c := configured(boardtest.Lines(chip))[d.Name]
				if servo, ok := c.(*Servo); ok {
					servo.travel = time.Millisecond
				}
				return open(t, c)
			})
		})
	}
}

// witness returns the value at the pins of an output that is fully on or off.
func witness(chip *boardtest.Chip, name string) device.Value {
	on := device.Number(100 * float64(level(chip, 17)))
	switch name {
	case "motor":
		return device.Number(on.Number() - 100*float64(level(chip, 18)))
	case "dimmer":
		return on
	}
	return device.Bool(chip.Level(17))
}

func open(t *testing.T, c driver.Config) device.Device {
	t.Helper()
	if v, ok := c.(driver.Validator); ok {
		if err := v.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func apply(t *testing.T, dev device.Device, v device.Value) error {
	t.Helper()
	return dev.(device.Actuator).Apply(t.Context(), dev.Describe().Points[0].Name, v)
}

func faulted(t *testing.T, err error, kind device.FaultKind, says string) {
	t.Helper()
	if err == nil || device.AsFault(err).Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want a fault %s with %q", err, kind, says)
	}
}

func level(c *boardtest.Chip, offset int) int {
	if c.Level(offset) {
		return 1
	}
	return 0
}

// levels are the changes of a pin, such as "101".
func levels(c *boardtest.Chip, offset int) string {
	s := ""
	for _, change := range c.Changes(offset) {
		s += map[bool]string{false: "0", true: "1"}[change.Level]
	}
	return s
}

func sampled(t *testing.T, dev device.Device) device.Reading {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return readings[0]
}

// TestOpenMovesNothing, and tells at once what stands in the way.
func TestOpenMovesNothing(t *testing.T) {
	chip := boardtest.Header()
	for name, c := range configured(boardtest.Lines(chip)) {
		open(t, c)
		if chip.Driven(17) || len(chip.Changes(17)) > 0 {
			t.Errorf("%s: opening it moved the pin", name)
		}
	}
	chip.Take(17, "somebody")
	for name, c := range configured(boardtest.Lines(chip)) {
		t.Run(name, func(t *testing.T) {
			_, err := c.Open(t.Context())
			faulted(t, err, device.Busy, `"somebody"`)
		})
	}
	for name, c := range configured(boardtest.Lines()) {
		t.Run(name, func(t *testing.T) {
			_, err := c.Open(t.Context())
			faulted(t, err, device.Offline, "no line GPIO17")
		})
	}
}

func TestSwitch(t *testing.T) {
	chip := boardtest.Header()
	chip.Drive(17, true) // an active-low relay board pulls its input up
	c := configured(boardtest.Lines(chip))["relay"].(*Switch)
	c.ActiveLow = true
	dev := open(t, c)
	if r := sampled(t, dev); r.Quality != device.Bad {
		t.Errorf("before the first move: %+v", r)
	}
	for _, on := range []bool{false, true, false, true} {
		if err := apply(t, dev, device.Bool(on)); err != nil || chip.Level(17) == on {
			t.Errorf("switched %v: the pin is %v, %v", on, chip.Level(17), err)
		}
		if r := sampled(t, dev); r.Value != device.Bool(on) {
			t.Error(r)
		}
	}
	if err := dev.Close(); err != nil || levels(chip, 17) != "10101" {
		t.Errorf("the pin went %q, %v", levels(chip, 17), err)
	}
}

func TestSwitchFaults(t *testing.T) {
	chip := boardtest.Header()
	dev := open(t, configured(boardtest.Lines(chip))["gpio-out"])
	if err := apply(t, dev, device.Bool(false)); err != nil {
		t.Fatal(err)
	}
	chip.Fail(17, syscall.EIO)
	faulted(t, apply(t, dev, device.Bool(true)), device.Offline, "GPIO17 does not respond")
	if r := sampled(t, dev); r.Quality != device.Bad {
		t.Error(r)
	}
	chip.Fail(17, nil)
	if err := apply(t, dev, device.Bool(true)); err != nil || !chip.Level(17) {
		t.Error("it does not recover:", err)
	}
	chip.Unplug()
	for range 2 {
		faulted(t, apply(t, dev, device.Bool(false)), device.Offline, "there is no line GPIO17")
	}
	chip.Plug()
	if err := apply(t, dev, device.Bool(false)); err != nil || chip.Level(17) {
		t.Error("it does not come back:", err)
	}
	chip.Stick(17, true)
	faulted(t, apply(t, dev, device.Bool(false)), device.Offline, "reads on")
	faulted(t, dev.Close(), device.Offline, "reads on")
}

func TestSafeOn(t *testing.T) {
	chip := boardtest.Header()
	c := configured(boardtest.Lines(chip))["gpio-out"].(*Switch)
	c.Safe = true
	dev := open(t, c)
	apply(t, dev, device.Bool(false))
	if err := dev.Close(); err != nil || !chip.Level(17) {
		t.Error("closed, and it is not at its safe value:", err)
	}
}

// highs are how long a pin was high, each time that it was.
func highs(chip *boardtest.Chip, offset int) (all []time.Duration) {
	var up time.Time
	for _, c := range chip.Changes(offset) {
		if c.Level {
			up = c.At
		} else {
			all = append(all, c.At.Sub(up))
		}
	}
	return all
}

func TestDimmer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		dev := open(t, configured(boardtest.Lines(chip))["dimmer"])
		for _, level := range []float64{0, 25, 100, 60, 0} {
			before := len(highs(chip, 17))
			if err := apply(t, dev, device.Number(level)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(995 * time.Millisecond)
			if r := sampled(t, dev); r.Value != device.Number(level) {
				t.Errorf("%v %%: %+v", level, r)
			}
			pulses := highs(chip, 17)[before:]
			switch {
			case level == 0 || level == 100:
				if len(pulses) > 1 || chip.Level(17) != (level == 100) {
					t.Errorf("%v %%: %v", level, pulses)
				}
			case len(pulses) < 98 || pulses[5] != time.Duration(level)*100*time.Microsecond:
				t.Errorf("%v %%: %d pulses such as %v", level, len(pulses), pulses[5])
			}
		}
	})
}

// TestReadBackOfAStillLine: a line that makes no pulses is read.
func TestReadBackOfAStillLine(t *testing.T) {
	for _, name := range []string{"dimmer", "motor"} {
		for _, level := range []float64{0, 100} {
			chip := boardtest.Header()
			dev := open(t, configured(boardtest.Lines(chip))[name])
			apply(t, dev, device.Number(level))
			if r := sampled(t, dev); r.Value != device.Number(level) {
				t.Errorf("%s at %v: %+v", name, level, r)
			}
			chip.Stick(17, level == 0)
			if r := sampled(t, dev); r.Quality != device.Bad {
				t.Errorf("%s at %v, and the line is the other way: %+v", name, level, r)
			}
		}
	}
}

// TestDimmerStopsAtOnce: a return to safe does not wait for the end of a pulse.
func TestDimmerStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		c := configured(boardtest.Lines(chip))["dimmer"].(*Dimmer)
		c.Frequency = 1
		dev := open(t, c)
		apply(t, dev, device.Number(90))
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		if err := apply(t, dev, device.Number(0)); err != nil || chip.Level(17) || time.Since(begun) != 0 {
			t.Errorf("%v after %v, %v", chip.Level(17), time.Since(begun), err)
		}
	})
}

func TestPulsesBreak(t *testing.T) {
	for _, name := range []string{"dimmer", "servo", "motor"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chip := boardtest.Header()
				dev := open(t, configured(boardtest.Lines(chip))[name])
				if err := apply(t, dev, device.Number(50)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				chip.Fail(17, syscall.EIO)
				time.Sleep(time.Second)
				if r := sampled(t, dev); r.Quality != device.Bad {
					t.Errorf("broken: %+v", r)
				}
				faulted(t, apply(t, dev, device.Number(60)), device.Offline, "GPIO17")
				chip.Fail(17, nil)
				if err := apply(t, dev, device.Number(60)); err != nil {
					t.Error("it does not recover:", err)
				}
				// A failure of the pulses does not prevent a return to safe.
				chip.Fail(17, syscall.EIO)
				time.Sleep(time.Second)
				chip.Fail(17, nil)
				if err := apply(t, dev, dev.Describe().Points[0].Safe); err != nil {
					t.Error("not to safe:", err)
				}
				apply(t, dev, device.Number(60))
				chip.Unplug()
				time.Sleep(time.Second)
				if r := sampled(t, dev); r.Quality != device.Bad {
					t.Errorf("unplugged: %+v", r)
				}
				chip.Plug()
				if err := apply(t, dev, device.Number(60)); err != nil {
					t.Error("it does not come back:", err)
				}
				if err := dev.Close(); err != nil || chip.Level(17) || chip.Driven(17) {
					t.Error(err)
				}
			})
		})
	}
}

func TestServo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		c := configured(boardtest.Lines(chip))["servo"].(*Servo)
		c.Safe = 45
		dev := open(t, c)
		for angle, want := range map[float64]time.Duration{0: 500 * time.Microsecond, 90: 1500 * time.Microsecond, 180: 2500 * time.Microsecond, 45: time.Millisecond} {
			before := len(highs(chip, 17))
			if err := apply(t, dev, device.Number(angle)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(990 * time.Millisecond)
			pulses := highs(chip, 17)[before:]
			if len(pulses) != 50 || pulses[0] != want || pulses[49] != want {
				t.Errorf("%v°: %d pulses such as %v, want %v", angle, len(pulses), pulses[0], want)
			}
		}
		apply(t, dev, device.Number(180))
		before, begun := len(highs(chip, 17)), time.Now()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		last := highs(chip, 17)[before:]
		if took := time.Since(begun); len(last) < 25 || last[len(last)-1] != time.Millisecond || took > c.travel+servoPeriod || chip.Level(17) {
			t.Errorf("closed after %v with %d pulses, at the end %v", took, len(last), last[len(last)-1])
		}
	})
}

// TestMotor: whatever is asked, the two directions are never on together, and one
// follows the other after the dead time at the earliest.
func TestMotor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chip := boardtest.Header()
		c := configured(boardtest.Lines(chip))["motor"].(*Motor)
		c.DeadTime = 50 * time.Millisecond
		dev := open(t, c)
		for _, speed := range []float64{100, -100, 0, 100, 30, -30, 30, 0, -100, -20, 100, -1, 0} {
			if err := apply(t, dev, device.Number(speed)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
			if r := sampled(t, dev); r.Value != device.Number(speed) {
				t.Error(r)
			}
		}
		chip.Fail(18, syscall.EIO)
		faulted(t, apply(t, dev, device.Number(50)), device.Offline, "GPIO18")
		chip.Fail(18, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		apply(t, dev, device.Number(50))
		if err := dev.(device.Actuator).Apply(ctx, "speed", device.Number(-50)); err == nil || chip.Level(17) || chip.Level(18) {
			t.Errorf("its time was over in the dead time: %v", err)
		}
		apply(t, dev, device.Number(-50))
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		apart(t, chip, c.DeadTime)
		if chip.Level(17) || chip.Level(18) {
			t.Error("it turns after Close")
		}
	})
}

// apart checks the record of both lines of a bridge.
func apart(t *testing.T, chip *boardtest.Chip, dead time.Duration) {
	t.Helper()
	type span struct{ from, to time.Time }
	spans := func(offset int) (all []span) {
		for _, c := range chip.Changes(offset) {
			if c.Level {
				all = append(all, span{from: c.At, to: c.At.Add(time.Hour)})
			} else {
				all[len(all)-1].to = c.At
			}
		}
		return all
	}
	a, b := spans(17), spans(18)
	if len(a) == 0 || len(b) == 0 {
		t.Fatal("one of the ways was never on")
	}
	for _, x := range a {
		for _, y := range b {
			if x.from.Before(y.to.Add(dead)) && y.from.Before(x.to.Add(dead)) {
				t.Errorf("forward %v to %v and backward %v to %v", x.from, x.to, y.from, y.to)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	nan := 0.0
	nan /= nan
	b := boardtest.Lines(boardtest.Header())
	for want, spoil := range map[string]func(map[string]driver.Config) driver.Config{
		"frequency: 2000": func(c map[string]driver.Config) driver.Config {
			d := c["dimmer"].(*Dimmer)
			d.Frequency = 2000
			return d
		},
		"frequency: NaN": func(c map[string]driver.Config) driver.Config {
			d := c["dimmer"].(*Dimmer)
			d.Frequency = nan
			return d
		},
		"safe: 50":  func(c map[string]driver.Config) driver.Config { d := c["dimmer"].(*Dimmer); d.Safe = 50; return d },
		"min_pulse": func(c map[string]driver.Config) driver.Config { d := c["servo"].(*Servo); d.MinPulse = 0; return d },
		"max_pulse": func(c map[string]driver.Config) driver.Config {
			d := c["servo"].(*Servo)
			d.MaxPulse = time.Second
			return d
		},
		"angles": func(c map[string]driver.Config) driver.Config { d := c["servo"].(*Servo); d.Angles.Max = -1; return d },
		"safe value within": func(c map[string]driver.Config) driver.Config {
			d := c["servo"].(*Servo)
			d.Safe = 200
			return d
		},
		"backward: GPIO17": func(c map[string]driver.Config) driver.Config {
			d := c["motor"].(*Motor)
			d.Backward = d.Forward
			return d
		},
		"dead_time":    func(c map[string]driver.Config) driver.Config { d := c["motor"].(*Motor); d.DeadTime = 0; return d },
		"frequency: 0": func(c map[string]driver.Config) driver.Config { d := c["motor"].(*Motor); d.Frequency = 0; return d },
		"debounce: 11s": func(c map[string]driver.Config) driver.Config {
			d := c["button"].(*Input)
			d.Debounce = 11 * time.Second
			return d
		},
		"pin_b: GPIO17": func(c map[string]driver.Config) driver.Config { d := c["encoder"].(*Encoder); d.B = d.A; return d },
		"debounce: 1s": func(c map[string]driver.Config) driver.Config {
			d := c["encoder"].(*Encoder)
			d.Debounce = time.Second
			return d
		},
		"per_step: 3": func(c map[string]driver.Config) driver.Config { d := c["encoder"].(*Encoder); d.PerStep = 3; return d },
	} {
		c := spoil(configured(b))
		faulted(t, c.(driver.Validator).Validate(), device.Invalid, want)
		if _, err := driver.Open(t.Context(), c); err == nil {
			t.Errorf("%s: it was opened", want)
		}
	}
}
