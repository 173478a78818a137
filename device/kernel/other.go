//go:build !linux

package kernel

import (
	"context"
	"io/fs"
	"os"

	"agentsite/device"
)

const timeval = 16

func (f feed) follow(ctx context.Context, _ func([]byte)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return device.Faultf(device.Offline, "%s can be read on Linux only", f.path)
}

func setScancodeMode(*os.File) error { return nil }

func groupOf(fs.FileInfo) int { return none }
