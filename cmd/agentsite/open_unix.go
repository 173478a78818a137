//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach keeps a program running when Ctrl-C ends this one.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
