package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// guardTime bounds the wait for the guard, which drives the outputs to their safe values after the site has ended.
const guardTime = 20 * time.Second

// runAsFirst runs the program as a child where this process is the first of a container, and returns the child's exit
// code. With its first process the kernel kills all others of a container: the guard would not outlive a site that
// crashes. It returns first = false in any other process.
func runAsFirst() (code int, first bool) {
	if os.Getpid() != 1 {
		return 0, false
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1)
	defer signal.Stop(signals)
	attr := &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C would arrive twice
	if term.IsTerminal(0) {
		attr.Foreground = true
	}
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attr,
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "agentsite: the site cannot be started (%v); mount /proc in the container\n", err)
		return exitFailure, true
	}
	go func() {
		for s := range signals {
			child.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil: // none is left
			return code, true
		case pid == child.Pid:
			if code = status.ExitStatus(); status.Signaled() {
				code = 128 + int(status.Signal())
			}
			time.AfterFunc(guardTime, func() { os.Exit(code) })
		}
	}
}
