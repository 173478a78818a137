//go:build !linux

package board

import (
	"time"

	"agentsite/device"
)

func kernelGPIO(string) GPIO { return noChips{} }

type noChips struct{}

var errNoLines = device.Faultf(device.Offline, "there are no GPIO lines on this system")

func (noChips) Chips() ([]Chip, error)                           { return nil, errNoLines }
func (noChips) Request(string, []int, LineConfig) (Lines, error) { return nil, errNoLines }
func (noChips) PrepareThread() func(time.Duration)               { return time.Sleep }

var failures []failure // there are no buses

func openSerial(string, SerialMode) (SerialPort, error) {
	return nil, device.Faultf(device.Offline, "serial ports are read on Linux only")
}

func mayUse(string) bool { return true } // there are no such files
