//go:build e2e

package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLogThatNobodyReads: a log that takes nothing any more, as a terminal that is held or a
// journal whose disk hangs, keeps no output from safe: whichever process dies or hangs.
func TestLogThatNobodyReads(t *testing.T) {
	for name, harm := range map[string]func(*relay){
		"the guard is killed": func(r *relay) { syscall.Kill(r.guard(t), syscall.SIGKILL) },
		"the guard hangs":     func(r *relay) { syscall.Kill(r.guard(t), syscall.SIGSTOP) },
		"the site hangs":      func(r *relay) { r.Cmd.Process.Signal(syscall.SIGSTOP) },
		"a signal stops all":  func(r *relay) { r.Cmd.Process.Signal(syscall.SIGUSR1) },
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(folder(t), "log")
			if err := unix.Mkfifo(log, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := unix.Open(log, unix.O_RDWR|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pipe)
			config, witness := relayConfig(t)
			r := &relay{start(t, config, "sh", "-c", `exec "$0" "$@" 2>`+log, need(t, "the program", program)), witness}
			r.on(t)
			for _, size := range []int{4096, 1} {
				for err = nil; err == nil; {
					_, err = unix.Write(pipe, make([]byte, size))
				}
			}
			harm(r)
			until(t, 20*time.Second, "the relay is off", func() bool { return r.shows() == "off" })
			r.Cmd.Process.Signal(syscall.SIGCONT)
		})
	}
}
