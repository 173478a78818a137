package gpio

import "agentsite/device/board"

// PowerOnLevels returns the line at its safe value.
func (c *Switch) PowerOnLevels() []board.PowerOnLevel {
	high := c.Safe != c.ActiveLow
	return []board.PowerOnLevel{{Pin: c.Pin, High: high, Open: c.Drive == board.OpenDrain && high || c.Drive == board.OpenSource && !high}}
}

// PowerOnLevels returns the line at its safe value.
func (c *Dimmer) PowerOnLevels() []board.PowerOnLevel {
	return []board.PowerOnLevel{{Pin: c.Pin, High: (c.Safe != 0) != c.ActiveLow}}
}

// PowerOnLevels returns a low line: without pulses a servo stays where it is.
func (c *Servo) PowerOnLevels() []board.PowerOnLevel { return []board.PowerOnLevel{{Pin: c.Pin}} }

// PowerOnLevels returns both lines off.
func (c *Motor) PowerOnLevels() []board.PowerOnLevel {
	return []board.PowerOnLevel{{Pin: c.Forward, High: c.ActiveLow}, {Pin: c.Backward, High: c.ActiveLow}}
}
