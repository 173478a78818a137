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
	pollInterval  = time.Hour // the board's clock drifts by some 0.1 s in that time
	retryInterval = 10 * time.Second
	// maxDifference is the largest difference of two servers that agree.
	maxDifference = time.Second
)

// timeServers have several operators, so that no single one decides the time.
var timeServers = []string{"0.pool.ntp.org", "1.pool.ntp.org", "2.pool.ntp.org", "time.cloudflare.com"}

// syncClock sets the clock by network time and marks it as synchronized in the kernel. It
// never returns.
func syncClock() error {
	for {
		wait := pollInterval
		if err := setClock(); err != nil {
			wait = retryInterval
		}
		time.Sleep(wait)
	}
}

func setClock() error {
	off, err := agreed(queryAll(timeServers, queryOffset))
	if err != nil {
		return err
	}
	now := unix.NsecToTimeval(time.Now().Add(off).UnixNano())
	if err := unix.Settimeofday(&now); err != nil {
		return err
	}
	// Linux reports a clock as synchronized while its maximum error, which grows, is below 16 s.
	synchronized := unix.Timex{Modes: unix.ADJ_STATUS | unix.ADJ_MAXERROR | unix.ADJ_ESTERROR, Status: 0, Maxerror: 500_000, Esterror: 100_000}
	if _, err := unix.Adjtimex(&synchronized); err != nil {
		return fmt.Errorf("the clock is set, but not marked as synchronized: %w", err)
	}
	return nil
}

// queryOffset returns how far this machine's clock is behind a server's.
func queryOffset(server string) (time.Duration, error) {
	answer, err := ntp.Query(server)
	if err == nil {
		err = answer.Validate()
	}
	if err != nil {
		return 0, err
	}
	return answer.ClockOffset, nil
}

// queryAll queries the servers concurrently, and returns the offsets of those that responded.
func queryAll(servers []string, query func(string) (time.Duration, error)) (offs []time.Duration) {
	answers := make(chan *time.Duration)
	for _, s := range servers {
		go func() {
			off, err := query(s)
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

// agreed returns the mean of the two closest offsets. It fails if they differ by more than
// maxDifference.
func agreed(offs []time.Duration) (time.Duration, error) {
	slices.Sort(offs)
	closest := maxDifference + 1
	var middle time.Duration
	for i := 1; i < len(offs); i++ {
		if apart := offs[i] - offs[i-1]; apart >= 0 && apart < closest { // negative after an overflow
			closest, middle = apart, offs[i-1]+apart/2
		}
	}
	if closest > maxDifference {
		return 0, errors.New("no two time servers agree")
	}
	return middle, nil
}
