package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setTimeout sets a watchdog's timeout, and returns the effective one
// (Documentation/watchdog/watchdog-api.rst). If the timeout cannot be set, it is assumed to be no
// shorter.
func setTimeout(f *os.File, d time.Duration) (time.Duration, error) {
	seconds := int(d / time.Second)
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	lost := raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.WDIOC_SETTIMEOUT, seconds)
		if err == nil {
			seconds, err = unix.IoctlGetInt(int(fd), unix.WDIOC_GETTIMEOUT)
		}
	})
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return time.Duration(seconds) * time.Second, errors.Join(lost, err)
}
