package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guardPatience is how long the first process waits for the others after the site's end.
const guardPatience = 10 * time.Second

// superviseContainer runs this program once more if it is the first process of a container, passes
// signals on to it, and returns its exit code once all processes have ended. Without that the kernel
// kills the guard together with the site, because the end of the first process ends a PID namespace.
func superviseContainer() (code int, first bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGQUIT)
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		attr.Sys.Foreground = true // the terminal's Ctrl-C reaches the child alone
	}
	pid, err := syscall.ForkExec("/proc/self/exe", os.Args, attr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "agentsite: the site cannot be started (%v); mount /proc in the container\n", err)
		return exitFailure, true
	}
	go func() {
		for s := range signals {
			syscall.Kill(pid, s.(syscall.Signal))
		}
	}()
	ended := make(chan int)
	go waitForAll(pid, ended)
	code = <-ended
	select {
	case <-ended:
	case <-time.After(guardPatience):
	}
	return code, true
}

// waitForAll reaps children, those of others too that have ended. It sends the exit code of pid, and closes
// ended once there is no child left.
func waitForAll(pid int, ended chan<- int) {
	defer close(ended)
	for {
		var status syscall.WaitStatus
		which, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case which == pid && status.Signaled():
			ended <- 128 + int(status.Signal())
		case which == pid:
			ended <- status.ExitStatus()
		}
	}
}
