package beacon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsite/device"
)

// radio hears advertisements. Its hear scans until ctx ends or the scan breaks.
type radio interface {
	hear(ctx context.Context, l listener) error
}

// listener is told of the advertisements of a scan.
type listener struct {
	only    func() []address // whose advertisements are wanted; nil for all
	changed <-chan struct{}  // only returns others now
	started func()           // the scan runs
	heard   func(*advert)    // quick; called by one goroutine, and keeps nothing of it
}

// The back-off of a scan that does not start, or breaks.
const (
	scanRetry    = time.Second
	scanRetryMax = time.Minute
)

// scanner shares one scan between the devices of a process. It runs while there is one.
type scanner struct {
	radio    radio
	retryMax time.Duration // of the back-off

	mu      sync.Mutex
	beacons map[address][]*beacon
	err     error         // why the scan does not run
	changed chan struct{} // room for one
	stop    context.CancelFunc
	ended   chan struct{} // closed when the scan has ended
}

func (s *scanner) add(b *beacon) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beacons == nil {
		s.beacons = make(map[address][]*beacon)
	}
	s.beacons[b.at] = append(s.beacons[b.at], b)
	if s.stop != nil {
		b.listening(s.err)
		select {
		case s.changed <- struct{}{}:
		default:
		}
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ended, s.changed, s.err = stop, make(chan struct{}), make(chan struct{}, 1), errStarting
	go s.run(ctx, s.ended, s.changed)
}

// remove waits for the end of the scan when b was its last device.
func (s *scanner) remove(b *beacon) {
	s.mu.Lock()
	left := slices.DeleteFunc(s.beacons[b.at], func(other *beacon) bool { return other == b })
	if s.beacons[b.at] = left; len(left) == 0 {
		delete(s.beacons, b.at)
	}
	var ended chan struct{}
	if len(s.beacons) == 0 && s.stop != nil {
		s.stop()
		ended, s.stop = s.ended, nil
	} else {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// run scans, with growing pauses while that fails.
func (s *scanner) run(ctx context.Context, ended, changed chan struct{}) {
	defer close(ended)
	logged := ""
	for retry := min(scanRetry, s.retryMax); ; retry = min(2*retry, s.retryMax) {
		begun := time.Time{}
		err := s.radio.hear(ctx, listener{
			only: s.addresses, changed: changed, heard: s.heard,
			started: func() {
				begun, logged = time.Now(), ""
				s.tell(ctx, nil)
			},
		})
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = device.Faultf(device.Internal, "the Bluetooth scan ended")
		}
		if !begun.IsZero() && time.Since(begun) > scanRetryMax {
			retry = min(scanRetry, s.retryMax) // it was well in between
		}
		if text := err.Error(); text != logged {
			slog.Warn("the Bluetooth scan does not run and is tried again", "err", err)
			logged = text
		}
		s.tell(ctx, err)
		if device.Sleep(ctx, retry) != nil {
			return
		}
	}
}

// tell tells all devices that the scan runs, or why not.
func (s *scanner) tell(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil { // another scan may run now
		return
	}
	s.err = err
	for _, all := range s.beacons {
		for _, b := range all {
			b.listening(err)
		}
	}
}

func (s *scanner) addresses() []address {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]address, 0, len(s.beacons))
	for a := range s.beacons {
		all = append(all, a)
	}
	return all
}

// heard passes an advertisement to the devices of its address.
func (s *scanner) heard(ad *advert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.beacons[ad.from] {
		b.heard(ad)
	}
}
