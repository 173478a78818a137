//go:build e2e

package guard

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"golang.org/x/sys/unix"
)

// TestLogThatNobodyReads: a blocked log, such as a stopped terminal or a journal with a hanging
// disk, keeps no output from safe, whichever process dies or hangs.
func TestLogThatNobodyReads(t *testing.T) {
	for name, harm := range map[string]func(*harness.RelaySite){
		"the guard is killed": func(r *harness.RelaySite) { syscall.Kill(r.Guard(t), syscall.SIGKILL) },
		"the guard hangs":     func(r *harness.RelaySite) { syscall.Kill(r.Guard(t), syscall.SIGSTOP) },
		"the site hangs":      func(r *harness.RelaySite) { r.Cmd.Process.Signal(syscall.SIGSTOP) },
		"a signal stops all":  func(r *harness.RelaySite) { r.Cmd.Process.Signal(syscall.SIGUSR1) },
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(harness.TempDir(t), "log")
			if err := unix.Mkfifo(log, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := unix.Open(log, unix.O_RDWR|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pipe)
			config, witness := harness.RelayConfig(t)
			r := &harness.RelaySite{Site: harness.Start(t, config, "sh", "-c", `exec "$0" "$@" 2>`+log, harness.Need(t, "the program", harness.Program)), Witness: witness}
			r.SwitchOn(t)
			for _, size := range []int{4096, 1} {
				for err = nil; err == nil; {
					_, err = unix.Write(pipe, make([]byte, size))
				}
			}
			harm(r)
			harness.WaitFor(t, 20*time.Second, "the relay is off", func() bool { return r.State() == "off" })
			r.Cmd.Process.Signal(syscall.SIGCONT)
		})
	}
}
