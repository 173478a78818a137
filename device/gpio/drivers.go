package gpio

import (
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers on lines of b.
func Drivers(b *board.Board) []driver.Driver {
	on := func(config func(*board.Board) driver.Config) func() driver.Config {
		return func() driver.Config { return config(b) }
	}
	return []driver.Driver{
		{Name: "gpio-out", Doc: "an output line", Config: on(newSwitch("switch", "a line of the board"))},
		{Name: "relay", Doc: "a relay on a line", Config: on(newSwitch("relay", "a relay"))},
		{Name: "mosfet", Doc: "a load behind a transistor on a line", Config: on(newSwitch("mosfet", "a load behind a transistor"))},
		{Name: "buzzer", Doc: "an active buzzer on a line", Config: on(newSwitch("buzzer", "makes a noise"))},
		{Name: "dimmer", Doc: "a dimmed load on a line, with PWM in software", Config: on(newDimmer)},
		{Name: "servo", Doc: "a hobby servo, with pulses in software", Config: on(newServo)},
		{Name: "motor", Doc: "a motor behind an H-bridge, in both directions", Config: on(newMotor)},
		{Name: "gpio-in", Doc: "an input line", Config: on(newGPIOIn)},
		{Name: "button", Doc: "a push button", Config: on(newButton)},
		{Name: "motion", Doc: "a motion sensor with one output, such as a PIR", Config: on(newMotion)},
		{Name: "contact", Doc: "a reed contact at a door or window", Config: on(newContact)},
		{Name: "stop-button", Doc: "an emergency stop button on a line, which a broken wire also triggers", Config: on(newStopButton)},
		{Name: "hc-sr04", Doc: "distance by an HC-SR04 (ultrasound, best effort)", Config: on(newDistance)},
		{Name: "encoder", Doc: "a rotary encoder with two outputs", Config: on(newEncoder)},
	}
}
