package kernel

import (
	"strings"
	"testing"
	"time"

	"agentsite/device"
)

var off, zero = device.Bool(false), device.Number(0)

func apply(t *testing.T, dev device.Device, v device.Value) {
	t.Helper()
	if err := dev.(device.Actuator).Apply(t.Context(), dev.Describe().Points[0].Name, v); err != nil {
		t.Fatal(err)
	}
}

func TestLED(t *testing.T) {
	root := led1.with(led255).write(t)
	dev := open(t, &LED{Name: "ACT", Safe: off, root: root})
	if got := root.Text("sys/class/leds/ACT/trigger"); got != "none timer [mmc0] heartbeat" {
		t.Errorf("Open moved the lamp: its trigger is %q", got)
	}
	apply(t, dev, device.Bool(true))
	if trigger, on := root.Text("sys/class/leds/ACT/trigger"), root.Text("sys/class/leds/ACT/brightness"); trigger != "none" || on != "1" {
		t.Errorf("trigger %q, brightness %q", trigger, on)
	}
	lamp := open(t, &LED{Name: "lamp", Safe: device.Number(100), root: root})
	apply(t, lamp, device.Number(50))
	if got := root.Text("sys/class/leds/lamp/brightness"); got != "128" {
		t.Errorf("50 %% of 255 is %s", got)
	}
	if r := sample(t, lamp)["brightness"]; r.Value != device.Number(50) {
		t.Errorf("128 of 255, which 50 %% has made, reads %+v", r)
	}
	setFile(t, root, "sys/class/leds/lamp/brightness", "129\n") // written by another program
	if r := sample(t, lamp)["brightness"]; r.Value == device.Number(50) {
		t.Error("somebody else's brightness reads as ours")
	}
	if err := lamp.Close(); err != nil || root.Text("sys/class/leds/lamp/brightness") != "255" {
		t.Errorf("closed with safe: 100: %v, brightness %s", err, root.Text("sys/class/leds/lamp/brightness"))
	}
	setFile(t, root, "sys/class/leds/lamp/brightness", "999\n")
	if r := sample(t, lamp)["brightness"]; r.Quality != device.Bad {
		t.Errorf("999 of 255: %+v", r)
	}
	setFile(t, root, "sys/class/leds/lamp/brightness", "bright\n")
	if r := sample(t, lamp)["brightness"]; r.Quality != device.Bad || !strings.Contains(r.Why, "cannot be read") {
		t.Errorf("bright: %+v", r)
	}
	_, err := (&LED{Name: "ACT", Safe: device.Number(50), root: root}).Open(t.Context())
	offline(t, err, "safe: on")
	faulted(t, (&LED{Name: "ACT", Safe: device.Number(101)}).Validate(), device.Invalid, "safe")
	_, err = (&LED{Name: "none", Safe: off, root: root}).Open(t.Context())
	offline(t, err, "ACT, lamp")

	setFile(t, root, "sys/class/leds/lamp/brightness", "0\n")
	apply(t, open(t, &LED{Name: "lamp", Safe: off, root: root}), device.Bool(true))
	if got := root.Text("sys/class/leds/lamp/brightness"); got != "255" {
		t.Errorf("a lamp that is only switched is on at %s of 255", got)
	}
}

const pwm0 = "sys/class/pwm/pwmchip0/pwm0/"

func TestPWM(t *testing.T) {
	root := chip0.write(t)
	dev := open(t, &PWM{Chip: "pwmchip0", Frequency: 25000, Safe: off, root: root})
	if root.Text(pwm0+"period") != "0" {
		t.Error("Open moved the channel")
	}
	apply(t, dev, device.Number(25))
	for file, want := range map[string]string{"period": "40000", "duty_cycle": "10000", "enable": "1", "polarity": "normal"} {
		if got := root.Text(pwm0 + file); got != want {
			t.Errorf("%s is %s, want %s", file, got, want)
		}
	}
	if r := sample(t, dev)["level"]; r.Value != device.Number(25) {
		t.Error(r)
	}
	third := device.Number(100. / 3)
	apply(t, dev, third)
	if r := sample(t, dev)["level"]; r.Value != third {
		t.Errorf("what the kernel rounds reads %+v", r)
	}
	setFile(t, root, pwm0+"duty_cycle", "20000\n") // written by another program
	if r := sample(t, dev)["level"]; r.Value != device.Number(50) {
		t.Error(r)
	}
	if err := dev.Close(); err != nil || root.Text(pwm0+"duty_cycle") != "0" || root.Text(pwm0+"enable") != "0" {
		t.Errorf("closed: %v, duty %s, enable %s", err, root.Text(pwm0+"duty_cycle"), root.Text(pwm0+"enable"))
	}
}

func TestPWMThatMustNotStop(t *testing.T) {
	for name, c := range map[string]*PWM{
		"a safe value that is not 0": {Safe: device.Number(30)},
		"inverted":                   {Inverted: true, Safe: off},
	} {
		t.Run(name, func(t *testing.T) {
			c.Chip, c.root = "pwmchip0", chip0.write(t)
			dev := open(t, c)
			apply(t, dev, device.Number(100))
			if err := dev.Close(); err != nil || c.root.Text(pwm0+"enable") != "1" {
				t.Errorf("%v, enable %s", err, c.root.Text(pwm0+"enable"))
			}
			if r := sample(t, dev)["level"]; r.Value != dev.Describe().Points[0].Safe {
				t.Error(r)
			}
		})
	}
	root := chip0.write(t)
	setFile(t, root, pwm0+"polarity", "inversed")
	dev := open(t, &PWM{Chip: "pwmchip0", Safe: off, root: root})
	apply(t, dev, device.Number(1))
	if got := root.Text(pwm0 + "polarity"); got != "normal" {
		t.Error(got)
	}
}

func TestServo(t *testing.T) {
	root := chip0.with(files{"sys/devices/1f00098000.pwm/x": "", "sys/class/pwm/pwmchip0/device": "->../../../devices/1f00098000.pwm"}).write(t)
	c := &PWM{Chip: "1f00098000.pwm", MinPulse: 500 * time.Microsecond, MaxPulse: 2500 * time.Microsecond, Range: &device.Range{Min: -90, Max: 90}, Safe: zero, root: root}
	dev := open(t, c)
	if r := sample(t, dev)["angle"]; r.Quality != device.Bad || r.Why == "" {
		t.Errorf("before the first pulse: %+v", r)
	}
	for angle, duty := range map[float64]string{-90: "500000", 0: "1500000", 90: "2500000", 45: "2000000"} {
		apply(t, dev, device.Number(angle))
		if got := root.Text(pwm0 + "duty_cycle"); got != duty {
			t.Errorf("%v° is a pulse of %s ns, want %s", angle, got, duty)
		}
		if r := sample(t, dev)["angle"]; r.Value != device.Number(angle) {
			t.Errorf("%v° reads back %+v", angle, r)
		}
	}
	if err := dev.Close(); err != nil || root.Text(pwm0+"duty_cycle") != "1500000" || root.Text(pwm0+"enable") != "1" {
		t.Errorf("closed: %v, duty %s, enable %s", err, root.Text(pwm0+"duty_cycle"), root.Text(pwm0+"enable"))
	}
}

func TestPWMAbsent(t *testing.T) {
	root := chip0.write(t)
	_, err := (&PWM{Chip: "pwmchip0", Channel: 1, Safe: off, root: root}).Open(t.Context())
	offline(t, err, "echo 1 > ")
	_, err = (&PWM{Chip: "pwmchip0", Channel: 2, Safe: off, root: root}).Open(t.Context())
	faulted(t, err, device.Invalid, "2 channels")
	_, err = (&PWM{Chip: "pwmchip1", Safe: off, root: root}).Open(t.Context())
	offline(t, err, "dtoverlay=pwm")
	_, err = (&PWM{Chip: "1f00098000.pwm", Safe: off, root: root}).Open(t.Context())
	offline(t, err, "1f00098000.pwm")
	dev := open(t, &PWM{Chip: "pwmchip0", Safe: off, root: root})
	spoil(t, root, pwm0+"duty_cycle")
	offline(t, dev.(device.Actuator).Apply(t.Context(), "level", device.Number(1)), "duty_cycle")
	if r := sample(t, dev)["level"]; r.Quality != device.Bad || !strings.Contains(r.Why, "duty_cycle") {
		t.Errorf("%+v", r)
	}
}

func TestPWMMistakes(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []PWM{
		{Channel: -1}, {Frequency: 50, Period: ms}, {Frequency: -1}, {Period: time.Minute}, {Period: -ms}, {Frequency: 1e9},
		{Range: &device.Range{Max: 200}}, {Range: &device.Range{Min: 5, Max: 5}}, {Range: &device.Range{Min: -5, Max: 5}},
		{MinPulse: ms}, {MaxPulse: ms}, {MinPulse: 2 * ms, MaxPulse: ms}, {MinPulse: ms, MaxPulse: 2 * ms, Period: 2 * ms}, {MinPulse: ms, MaxPulse: 6 * ms},
		{Safe: device.Number(101)}, {Safe: device.Text("x")}, {MinPulse: ms, MaxPulse: 2 * ms, Safe: device.Bool(false)},
	} {
		if c.Chip = "pwmchip0"; c.Safe.IsZero() {
			c.Safe = zero
		}
		faulted(t, c.Validate(), device.Invalid, "")
	}
	faulted(t, (&PWM{Chip: "pwmchip0"}).Validate(), device.Invalid, "needs a safe value")
	faulted(t, (&PWM{}).Validate(), device.Invalid, "chip")
	for _, c := range []PWM{{Safe: off}, {Safe: device.Bool(true)}, {Range: &device.Range{Min: 20, Max: 80}, Safe: device.Number(20)}, {MinPulse: ms, MaxPulse: 2 * ms, Range: &device.Range{Min: 10, Max: 20}, Safe: device.Number(10)}} {
		c.Chip = "pwmchip0"
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
