//go:build !linux

package kernel

import (
	"context"

	"agentsite/device"
)

// Watch is for Linux.
func (in *input) Watch(ctx context.Context, _ func(device.Reading)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return device.Faultf(device.Offline, "input devices are read on Linux only")
}
