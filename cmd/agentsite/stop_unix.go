//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// stopSignals are emergency stops: SIGUSR1.
func stopSignals() <-chan os.Signal {
	asked := make(chan os.Signal, 1) // a signal before anybody receives is not lost
	signal.Notify(asked, syscall.SIGUSR1)
	return asked
}
