package gpio

import (
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
		{Name: "gpio-out", Doc: "an output line", Config: output("switch", "a line of the board")},
		{Name: "relay", Doc: "a relay on a line", Config: output("relay", "a relay")},
		{Name: "mosfet", Doc: "a load behind a transistor on a line", Config: output("mosfet", "a load behind a transistor")},
		{Name: "buzzer", Doc: "an active buzzer on a line", Config: output("buzzer", "makes a noise")},
		{Name: "dimmer", Doc: "a dimmed load on a line, with PWM in software", Config: func() driver.Config { return &Dimmer{Frequency: 100, board: b} }},
		{Name: "servo", Doc: "a hobby servo, with pulses in software", Config: func() driver.Config {
			return &Servo{Angles: device.Range{Max: 180}, MinPulse: 500 * time.Microsecond, MaxPulse: 2500 * time.Microsecond, board: b, travel: 500 * time.Millisecond}
		}},
		{Name: "motor", Doc: "a motor behind an H-bridge, in both directions", Config: func() driver.Config { return &Motor{Frequency: 100, DeadTime: 100 * time.Millisecond, board: b} }},
		{Name: "gpio-in", Doc: "an input line", Config: func() driver.Config { return &Input{board: b, state: state("input", "the level at the line")} }},
		{Name: "button", Doc: "a push button", Config: func() driver.Config {
			return &Input{ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b,
				state: state("pressed", "it is pressed"), event: event("button", "true when it is pressed, false when it is released")}
		}},
		{Name: "motion", Doc: "a motion sensor with one output, such as a PIR", Config: func() driver.Config {
			return &Input{Pull: board.PullDown, Debounce: 30 * time.Millisecond, board: b,
				state: state("moving", "the sensor sees something"), event: event("motion", "true when a movement begins, false when it ends")}
		}},
		{Name: "contact", Doc: "a reed contact at a door or window", Config: func() driver.Config {
			return &Input{ActiveLow: true, Pull: board.PullUp, Debounce: 20 * time.Millisecond, board: b, state: state("closed", "the magnet is there")}
		}},
		{Name: "stop-button", Doc: "an emergency stop button on a line, which a broken wire also triggers", Config: func() driver.Config {
			// it is wired to open when it is pressed: a broken wire stops too
			return &Input{Pull: board.PullUp, Debounce: 5 * time.Millisecond, board: b, stops: true, state: state("pressed", "the emergency stop is pressed, or its wire is broken")}
		}},
		{Name: "hc-sr04", Doc: "distance by an HC-SR04 (ultrasound, best effort)", Config: func() driver.Config { return &Distance{Temperature: 20, board: b} }},
		{Name: "encoder", Doc: "a rotary encoder with two outputs", Config: func() driver.Config {
			return &Encoder{Pull: board.PullUp, Debounce: time.Millisecond, PerStep: 4, board: b}
		}},
	}
}
