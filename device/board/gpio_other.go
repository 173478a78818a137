//go:build !linux

package board

import (
	"time"

	"agentsite/device"
)

func kernelGPIO(string) GPIO { return noChips{} }

type noChips struct{}

func (noChips) Chips() ([]Chip, error) {
	return nil, device.Faultf(device.Offline, "there are no GPIO lines on this system")
}

func (noChips) Request(string, []int, LineConfig) (Lines, error) {
	return nil, device.Faultf(device.Offline, "there are no GPIO lines on this system")
}

func (noChips) PrepareThread() func(time.Duration) { return time.Sleep }
