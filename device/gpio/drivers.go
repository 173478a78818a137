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
		{Name: "gpio-out", Doc: "a line that is switched on and off", Config: on(newSwitch("switch", "a line of the board"))},
		{Name: "relay", Doc: "a relay on a line", Config: on(newSwitch("relay", "a relay"))},
		{Name: "mosfet", Doc: "a load behind a transistor on a line", Config: on(newSwitch("mosfet", "a load behind a transistor"))},
		{Name: "buzzer", Doc: "a buzzer that sounds by itself, on a line", Config: on(newSwitch("buzzer", "makes a noise"))},
		{Name: "dimmer", Doc: "a load that is on for a part of the time, by pulses of this program", Config: on(newDimmer)},
		{Name: "servo", Doc: "a hobby servo, by pulses of this program", Config: on(newServo)},
		{Name: "motor", Doc: "a motor behind an H-bridge, in both directions", Config: on(newMotor)},
		{Name: "gpio-in", Doc: "a line that is read", Config: on(newGPIOIn)},
		{Name: "button", Doc: "a push button", Config: on(newButton)},
		{Name: "motion", Doc: "a motion sensor with one output, such as a PIR", Config: on(newMotion)},
		{Name: "contact", Doc: "a reed contact at a door or window", Config: on(newContact)},
		{Name: "stop-button", Doc: "an emergency stop on a line, which a broken wire sets off too", Config: on(newStopButton)},
		{Name: "hc-sr04", Doc: "the distance to what is before an HC-SR04, by ultrasound, as well as a program can tell", Config: on(newDistance)},
		{Name: "encoder", Doc: "a rotary encoder with two outputs", Config: on(newEncoder)},
	}
}
