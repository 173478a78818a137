package kernel

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentsite/device"
	"agentsite/device/devicetest"
	"agentsite/device/driver"
	"agentsite/device/sysfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	iio0 = "sys/bus/iio/devices/iio:device0/"
	iio1 = "sys/bus/iio/devices/iio:device1/"
	w1a  = "sys/bus/w1/devices/28-0316a2795c1f/"
)

// bme280 has the files of the emulated board's kernel.
var bme280 = files{
	"name": "bme280\n", "in_temp_input": "25080\n", "in_pressure_input": "100.653000000\n",
	"in_humidityrelative_input": "56565\n", "in_temp_oversampling_ratio": "2\n", "dev": "251:0\n",
}

var ads1015 = files{
	"name": "ads1015\n", "in_voltage0_raw": "1000\n", "in_voltage0_scale": "2.000000000\n",
	"in_voltage0-voltage1_raw": "-12\n", "in_voltage0-voltage1_scale": "2\n", "in_voltage10_raw": "1\n", "in_voltage10_scale": "2\n",
	"in_voltage2_raw": "3\n", "in_voltage2_scale": "2\n", "in_voltage2_label": "soil\n",
}

var lm75 = files{"name": "lm75\n", "temp1_input": "21500\n", "temp1_max": "80000\n", "temp1_max_alarm": "0\n"}

var (
	led1   = in("sys/class/leds/ACT/", files{"brightness": "0\n", "max_brightness": "1\n", "trigger": "none timer [mmc0] heartbeat\n"})
	led255 = in("sys/class/leds/lamp/", files{"brightness": "0\n", "max_brightness": "255\n"})
	chip0  = in("sys/class/pwm/pwmchip0/", files{"npwm": "2\n", "export": "", "pwm0/enable": "0\n", "pwm0/period": "0\n", "pwm0/duty_cycle": "0\n", "pwm0/polarity": "normal\n"})
)

func TestConformance(t *testing.T) {
	var root sysfs.Root
	level := func(path string, full float64, dimmed bool) func(string) device.Value {
		return func(string) device.Value {
			n, err := new(reader).number(root.Path(path))
			if err != nil {
				t.Error(err)
			}
			if !dimmed {
				return device.Bool(n > 0)
			}
			return device.Number(100 * n / full)
		}
	}
	tests := map[string]struct {
		files files
		open  func() opener
		level func(string) device.Value
	}{
		"iio":     {in(iio0, bme280), func() opener { return &Selector{class: iio, Name: "bme280", root: root} }, nil},
		"adc":     {in(iio0, ads1015), func() opener { return &Selector{class: iio, Device: "iio:device0", root: root} }, nil},
		"hwmon":   {in("sys/class/hwmon/hwmon3/", lm75), func() opener { return &Selector{class: hwmon, Name: "lm75", root: root} }, nil},
		"w1":      {in(w1a, files{"w1_slave": w1Slave("5e014b467fff0210", true, 21875)}), func() opener { return &W1{root: root} }, nil},
		"thermal": {in("sys/class/thermal/thermal_zone0/", files{"type": "cpu-thermal\n", "temp": "48312\n"}), func() opener { return &Thermal{Zone: "cpu-thermal", root: root} }, nil},
		"switch":  {led1, func() opener { return &LED{Name: "ACT", Safe: off, root: root} }, level("sys/class/leds/ACT/brightness", 1, false)},
		"dimmer":  {led255, func() opener { return &LED{Name: "lamp", Safe: zero, root: root} }, level("sys/class/leds/lamp/brightness", 255, true)},
		"pwm":     {chip0, func() opener { return &PWM{Chip: "pwmchip0", Safe: off, root: root} }, level("sys/class/pwm/pwmchip0/pwm0/duty_cycle", 1e6, true)},
		"servo": {chip0, func() opener {
			return &PWM{Chip: "pwmchip0", MinPulse: time.Millisecond, MaxPulse: 2 * time.Millisecond, Range: &device.Range{Max: 90}, Safe: zero, root: root}
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			devicetest.Options{Level: tt.level}.Run(t, func(t *testing.T) device.Device {
				root = tt.files.write(t)
				dev, err := tt.open().Open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return dev
			})
		})
	}
}

func TestDriversWithoutHardware(t *testing.T) {
	empty := files{}.write(t)
	for name, c := range map[string]opener{
		"iio": &Selector{class: iio, Name: "bme280", root: empty}, "hwmon": &Selector{class: hwmon, Name: "lm75", root: empty}, "w1": &W1{root: empty},
		"thermal": &Thermal{Zone: "x", root: empty}, "led": &LED{Name: "ACT", Safe: off, root: empty}, "pwm": &PWM{Chip: "pwmchip0", Safe: off, root: empty},
		"input": &Input{Name: "gpio-keys", root: empty}, "input file": &Input{Device: "/dev/input/event0", root: empty},
	} {
		if _, err := c.Open(t.Context()); err == nil || device.AsFault(err).Kind != device.Offline {
			t.Errorf("%s: %v, want an offline fault", name, err)
		}
	}
	for _, d := range Drivers() {
		if d.Name == "" || d.Doc == "" || d.Config() == nil {
			t.Errorf("%+v", d)
		}
		if _, ok := d.Config().(driver.Validator); !ok {
			t.Errorf("%s cannot be checked without hardware", d.Name)
		}
	}
}

// TestUnpluggedAndBack: a device disappears and returns; in IIO with another number, while
// another chip has its old one.
func TestUnpluggedAndBack(t *testing.T) {
	root := in(iio0, bme280).write(t)
	dev := open(t, &Selector{class: iio, Name: "bme280", root: root})
	rename(t, root, "sys/bus/iio/devices/iio:device0", "away")
	_, err := dev.(device.Sensor).Sample(t.Context())
	offline(t, err, "bme280")
	for path, content := range in(iio0, files{"name": "tmp117\n", "in_temp_input": "1\n"}) {
		os.MkdirAll(root.Path(iio0), 0o755)
		setFile(t, root, path, content)
	}
	_, err = dev.(device.Sensor).Sample(t.Context())
	offline(t, err, "bme280")
	rename(t, root, "away", "sys/bus/iio/devices/iio:device1")
	if r := sample(t, dev)["temperature"]; r.Value != device.Number(25.08) {
		t.Errorf("back: %+v", r)
	}

	root = in(w1a, files{"temperature": "21875\n"}).write(t)
	dev = open(t, &W1{root: root})
	rename(t, root, "sys/bus/w1/devices/28-0316a2795c1f", "sys/bus/w1/devices/28-0316a2795c20")
	_, err = dev.(device.Sensor).Sample(t.Context()) // not the same thermometer
	offline(t, err, "28-0316a2795c1f")
	rename(t, root, "sys/bus/w1/devices/28-0316a2795c20", "sys/bus/w1/devices/28-0316a2795c1f")
	reads(t, dev, map[string]any{"temperature Cel": 21.875})

	root = led1.write(t)
	dev = open(t, &LED{Name: "ACT", Safe: off, root: root})
	rename(t, root, "sys/class/leds/ACT", "away")
	offline(t, dev.(device.Actuator).Apply(t.Context(), "led", device.Bool(true)), "")
	rename(t, root, "away", "sys/class/leds/ACT")
	if err := dev.(device.Actuator).Apply(t.Context(), "led", device.Bool(true)); err != nil {
		t.Error(err)
	}
}

// TestContextWhileAnotherSamples: a context ends during another, long sample.
func TestContextWhileAnotherSamples(t *testing.T) {
	dev := open(t, &Selector{class: iio, Name: "bme280", root: in(iio0, bme280).write(t)}).(*sensor)
	dev.busy <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := dev.Sample(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-dev.busy
	sample(t, dev)
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]float64{"0\n": 0, "-0.000598": -0.000598, " 25080\n": 25080, "1.000000000\n": 1, "+3": 3, "18446744073709551615": 1 << 64} {
		if got, err := parseNumber([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "NaN", "nan\n", "inf", "-Inf", "1e3", "0x10", "1_000", "1 2", "12 dB", "--1", "1.2.3", "1-2", ".", "99999999999999999999999", "\x00", "１"} {
		if got, err := parseNumber([]byte(text)); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// FuzzFiles writes arbitrary content to the files of each kind of device.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{"", "25080\n", "-1", "NaN", "1e999", "99999999999999999999", w1Slave("50054b467fff0c10", true, 85000), w1Slave("5e014b467fff0210", false, 21875), "0\x00", ": YES\nt="} {
		f.Add([]byte(seed), []byte("1\n"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		root := in(iio0, files{"name": "x\n", "in_temp_raw": string(a), "in_temp_scale": string(b), "in_temp_offset": string(a), "in_humidityrelative_input": string(b), "in_accel_x_raw": string(b), "in_voltage0_raw": string(a)}).
			with(in("sys/class/hwmon/hwmon0/", files{"name": "x\n", "temp1_input": string(a), "temp1_fault": string(b), "temp1_alarm": string(a), "power1_input": string(b)})).
			with(in(w1a, files{"w1_slave": string(a)}), in("sys/class/leds/x/", files{"brightness": string(a), "max_brightness": "255"})).
			with(in("sys/class/pwm/pwmchip0/", files{"pwm0/enable": string(a), "pwm0/period": string(b), "pwm0/duty_cycle": string(a)})).write(t)
		for _, c := range []opener{&Selector{class: iio, Name: "x", root: root}, &Selector{class: hwmon, Name: "x", root: root}, &W1{root: root}, &LED{Name: "x", Safe: off, root: root},
			&PWM{Chip: "pwmchip0", Safe: off, root: root}, &PWM{Chip: "pwmchip0", MinPulse: time.Millisecond, MaxPulse: 2 * time.Millisecond, Safe: zero, root: root}} {
			dev, err := c.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			readings, err := dev.(device.Sensor).Sample(t.Context())
			if err != nil {
				continue
			}
			for _, r := range readings {
				p, _ := dev.Describe().Point(r.Point)
				switch {
				case r.Quality == device.Bad && r.Why != "":
				case !r.Value.Finite() || r.Value.IsZero():
					t.Errorf("%s reads %v from %q and %q", r.Point, r.Value, a, b)
				case p.Range != device.Range{} && !p.Range.Contains(r.Value.Number()):
					t.Errorf("%s = %v is good outside %v, from %q and %q", r.Point, r.Value, p.Range, a, b)
				}
			}
		}
		for _, size := range []int{32, 64} {
			for _, n := range bitmap(string(a), size) {
				code{evKey, n}.name()
			}
		}
	})
}

func BenchmarkSample(b *testing.B) {
	dev := open(b, &Selector{class: iio, Name: "bme280", root: in(iio0, bme280).write(b)}).(device.Sensor)
	b.ReportAllocs()
	for b.Loop() {
		dev.Sample(b.Context())
	}
}
