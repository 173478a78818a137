//go:build !linux

package board

import (
	"time"

	"agentsite/device"
)

// gpio is where the board's lines come from.
func (b *Board) gpio() chips {
	if b.chips != nil {
		return b.chips
	}
	return noChips{}
}

type noChips struct{}

func (noChips) list() ([]chip, error) {
	return nil, device.Faultf(device.Offline, "there are no GPIO lines on this system")
}

func (noChips) request(string, []int, setup) (lines, error) {
	return nil, device.Faultf(device.Offline, "there are no GPIO lines on this system")
}

func (noChips) pulses() func(time.Duration) { return time.Sleep }
