//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/beevik/ntp"
	"golang.org/x/sys/unix"
)

const (
	timeServer = "pool.ntp.org"
	askAgain   = time.Hour // the board's crystal loses some 0.1 s in that time
	retryClock = 10 * time.Second
)

// keepClock sets the clock by the network's time, and tells the kernel that it is right.
func keepClock() error {
	for {
		wait := askAgain
		if err := setClock(); err != nil {
			wait = retryClock
		}
		time.Sleep(wait)
	}
}

func setClock() error {
	answer, err := ntp.Query(timeServer)
	if err == nil {
		err = answer.Validate()
	}
	if err != nil {
		return err
	}
	now := unix.NsecToTimeval(time.Now().Add(answer.ClockOffset).UnixNano())
	if err := unix.Settimeofday(&now); err != nil {
		return err
	}
	// Linux holds a clock to be right for as long as its worst error, which grows, is below 16 s.
	right := unix.Timex{Modes: unix.ADJ_STATUS | unix.ADJ_MAXERROR | unix.ADJ_ESTERROR, Status: 0, Maxerror: 500_000, Esterror: 100_000}
	if _, err := unix.Adjtimex(&right); err != nil {
		return fmt.Errorf("the clock is set, and the kernel not told: %w", err)
	}
	return nil
}
