//go:build !unix

package main

import "os/exec"

// detach does nothing: the program that starts the browser ends at once.
func detach(*exec.Cmd) {}
