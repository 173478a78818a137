//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/beevik/ntp"
	"golang.org/x/sys/unix"
)

const (
	askAgain   = time.Hour // the board's crystal loses some 0.1 s in that time
	retryClock = 10 * time.Second
	// within is how close the answers of two servers have to be.
	within = time.Second
)

// timeServers belong to several operators, so that none of them alone says what time it is.
var timeServers = []string{"0.pool.ntp.org", "1.pool.ntp.org", "2.pool.ntp.org", "time.cloudflare.com"}

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
	off, err := agreed(askAll(timeServers, askTime))
	if err != nil {
		return err
	}
	now := unix.NsecToTimeval(time.Now().Add(off).UnixNano())
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

// askTime is how far this machine's clock is behind a server's.
func askTime(server string) (time.Duration, error) {
	answer, err := ntp.Query(server)
	if err == nil {
		err = answer.Validate()
	}
	if err != nil {
		return 0, err
	}
	return answer.ClockOffset, nil
}

// askAll asks the servers at once, and returns what those said that answered.
func askAll(servers []string, ask func(string) (time.Duration, error)) (offs []time.Duration) {
	answers := make(chan *time.Duration)
	for _, s := range servers {
		go func() {
			off, err := ask(s)
			if err != nil {
				answers <- nil
				return
			}
			answers <- &off
		}()
	}
	for range servers {
		if off := <-answers; off != nil {
			offs = append(offs, *off)
		}
	}
	return offs
}

// agreed is the offset in the middle of the two that are closest, unless even those differ.
func agreed(offs []time.Duration) (time.Duration, error) {
	slices.Sort(offs)
	closest := within + 1
	var middle time.Duration
	for i := 1; i < len(offs); i++ {
		if apart := offs[i] - offs[i-1]; apart >= 0 && apart < closest { // it overflows for years apart
			closest, middle = apart, offs[i-1]+apart/2
		}
	}
	if closest > within {
		return 0, errors.New("no two time servers agree")
	}
	return middle, nil
}
