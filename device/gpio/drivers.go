package gpio

import (
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers on lines of b.
func Drivers(b *board.Board) []driver.Driver {
	output := func(name, description string) func() driver.Config {
		return func() driver.Config {
			return &Switch{board: b, point: device.Point{Name: name, Kind: device.KindSwitch, Description: description}}
		}
	}
	return []driver.Driver{
		{Name: "gpio-out", Doc: "an output line", Also: "switch output led gpio digital-out",
			Entry: "{ driver: gpio-out, pin: GPIO17, safe: off }", Config: output("switch", "a line of the board")},
		{Name: "relay", Doc: "a relay on a line", Also: "relais ssr solid-state-relay valve pump socket",
			Entry: "{ driver: relay, pin: GPIO17, safe: off }", Config: output("relay", "a relay")},
		{Name: "mosfet", Doc: "a load behind a transistor on a line", Also: "transistor irf520 irlz44n fan heater",
			Entry: "{ driver: mosfet, pin: GPIO17, safe: off }", Config: output("mosfet", "a load behind a transistor")},
		{Name: "buzzer", Doc: "an active buzzer on a line", Also: "beeper piezo",
			Entry: "{ driver: buzzer, pin: GPIO17, safe: off }", Config: output("buzzer", "makes a noise")},
		{Name: "dimmer", Doc: "a dimmed load on a line, with PWM in software", Also: "software-pwm led-dimmer",
			Entry: "{ driver: dimmer, pin: GPIO17, safe: 0 }", Config: func() driver.Config { return &Dimmer{Frequency: 100, board: b} }},
		{Name: "servo", Doc: "a hobby servo, with pulses in software", Also: "sg90 mg90s mg996r",
			Entry: "{ driver: servo, pin: GPIO17, safe: 0 }", Config: func() driver.Config {
				return &Servo{Angles: device.Range{Max: 180}, MinPulse: 500 * time.Microsecond, MaxPulse: 2500 * time.Microsecond, board: b, travel: 500 * time.Millisecond}
			}},
		{Name: "motor", Doc: "a motor behind an H-bridge, in both directions",
			Instead: stepper, Also: "l298n drv8833 tb6612 tb6612fng l9110 dc-motor h-bridge", Entry: "{ driver: motor, forward: GPIO5, backward: GPIO6, safe: 0 }", Config: func() driver.Config { return &Motor{Frequency: 100, DeadTime: 100 * time.Millisecond, board: b} }},
		{Name: "gpio-in", Doc: "an input line", Also: "input-pin digital-in binary-sensor float-switch",
			Entry: "{ driver: gpio-in, pin: GPIO17 }", Config: func() driver.Config { return &Input{board: b, state: state("input", "the level at the line")} }},
		{Name: "button", Doc: "a push button", Also: "push-button switch taster key doorbell bell",
			Entry: "{ driver: button, pin: GPIO17 }", Config: func() driver.Config {
				return &Input{ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b,
					state: state("pressed", "it is pressed"), event: event("button", "true when it is pressed, false when it is released")}
			}},
		{Name: "motion", Doc: "a motion sensor with one output, such as a PIR", Also: "pir hc-sr501 am312 rcwl-0516 presence",
			Entry: "{ driver: motion, pin: GPIO17 }", Config: func() driver.Config {
				return &Input{Pull: board.PullDown, Debounce: 30 * time.Millisecond, board: b,
					state: state("moving", "the sensor sees something"), event: event("motion", "true when a movement begins, false when it ends")}
			}},
		{Name: "contact", Doc: "a reed contact at a door or window", Also: "reed reed-switch reed-contact door window mc-38",
			Entry: "{ driver: contact, pin: GPIO17 }", Config: func() driver.Config {
				return &Input{ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b, state: state("closed", "the magnet is there")}
			}},
		{Name: "stop-button", Doc: "an emergency stop button on a line, which a broken wire also triggers",
			Also: "e-stop emergency-stop", Entry: "{ driver: stop-button, pin: GPIO17 }", Config: func() driver.Config {
				// it is wired to open when it is pressed: a broken wire stops too
				return &Input{Pull: board.PullUp, Debounce: 5 * time.Millisecond, board: b, stops: true, state: state("pressed", "the emergency stop is pressed, or its wire is broken")}
			}},
		{Name: "hc-sr04", Doc: "distance by an HC-SR04 (ultrasound, best effort)", Also: "ultrasonic distance jsn-sr04t",
			Note:  "Echo has 5 V: connect it through two resistors, 1 kΩ and 2 kΩ.",
			Entry: "{ driver: hc-sr04, trigger: GPIO5, echo: GPIO6 }", Config: func() driver.Config { return &Distance{Temperature: 20, board: b} }},
		{Name: "encoder", Doc: "a rotary encoder with two outputs", Also: "rotary rotary-encoder ky-040 ec11",
			Entry: "{ driver: encoder, pin_a: GPIO5, pin_b: GPIO6 }", Config: func() driver.Config {
				return &Encoder{Pull: board.PullUp, Debounce: time.Millisecond, PerStep: 4, board: b}
			}},
	}
}

// stepper returns advice for stepper motors and their driver boards, which this program does not support.
func stepper(part string) string {
	switch strings.ToLower(part) {
	case "stepper", "28byj-48", "uln2003", "a4988", "drv8825", "tmc2209", "nema17":
		return "stepper motors have no driver: write driver: motor for a motor with two wires, or driver: servo"
	}
	return ""
}
