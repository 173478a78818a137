//go:build linux || darwin

package host

import (
	"os"
	"syscall"
)

// statVolume asks statfs(2).
func statVolume(folder string) (volume, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil {
		return volume{}, &os.PathError{Op: "statfs", Path: folder, Err: err}
	}
	block := float64(st.Bsize)
	return volume{
		used: float64(st.Blocks-st.Bfree) * block,
		free: float64(st.Bavail) * block,
	}, nil
}
