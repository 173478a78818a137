package board

import "agentsite/device/driver"

// Drivers returns the drivers of this room: what hangs on plain lines of the board.
func Drivers(b *Board) []driver.Driver {
	return []driver.Driver{
		{Name: "gpio-out", Doc: "a line that is switched on and off", Config: b.newSwitch("switch", "a line of the board")},
		{Name: "relay", Doc: "a relay on a line", Config: b.newSwitch("relay", "a relay")},
		{Name: "mosfet", Doc: "a load behind a transistor on a line", Config: b.newSwitch("mosfet", "a load behind a transistor")},
		{Name: "buzzer", Doc: "a buzzer that sounds by itself, on a line", Config: b.newSwitch("buzzer", "makes a noise")},
		{Name: "dimmer", Doc: "a load that is on for a part of the time, by pulses of this program", Config: b.newDimmer},
		{Name: "servo", Doc: "a hobby servo, by pulses of this program", Config: b.newServo},
		{Name: "motor", Doc: "a motor behind an H-bridge, in both directions", Config: b.newMotor},
		{Name: "gpio-in", Doc: "a line that is read", Config: b.newGPIOIn},
		{Name: "button", Doc: "a push button", Config: b.newButton},
		{Name: "motion", Doc: "a motion sensor with one output, such as a PIR", Config: b.newMotion},
		{Name: "contact", Doc: "a reed contact at a door or window", Config: b.newContact},
		{Name: "stop-button", Doc: "an emergency stop on a line, which a broken wire sets off too", Config: b.newStopButton},
		{Name: "hc-sr04", Doc: "the distance to what is before an HC-SR04, by ultrasound, as well as a program can tell", Config: b.newDistance},
		{Name: "encoder", Doc: "a rotary encoder with two outputs", Config: b.newEncoder},
	}
}
