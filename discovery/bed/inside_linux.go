package bed

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Inside calls do in the network of a host: its connections and listeners are there.
func Inside(host string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread, which stays in that network, ends with this function
		of, err := os.Open("/run/netns/" + host)
		if err == nil {
			defer of.Close()
			err = unix.Setns(int(of.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}
