package gpio

import "agentsite/device/board"

// Holds is the line at its safe value.
func (c *Switch) Holds() []board.Hold {
	high := c.Safe != c.ActiveLow
	return []board.Hold{{Pin: c.Pin, High: high, Open: c.Drive == board.OpenDrain && high || c.Drive == board.OpenSource && !high}}
}

// Holds is the line at its safe value.
func (c *Dimmer) Holds() []board.Hold {
	return []board.Hold{{Pin: c.Pin, High: (c.Safe != 0) != c.ActiveLow}}
}

// Holds is a low line: without pulses a servo stays where it is.
func (c *Servo) Holds() []board.Hold { return []board.Hold{{Pin: c.Pin}} }

// Holds is both lines off.
func (c *Motor) Holds() []board.Hold {
	return []board.Hold{{Pin: c.Forward, High: c.ActiveLow}, {Pin: c.Backward, High: c.ActiveLow}}
}
