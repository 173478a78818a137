package p2p

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	"pgregory.net/rapid"
)

// reply is a simulated relay's answer to one request, and its treatment of the connection after it.
type reply struct {
	OK          bool
	Takes, Held time.Duration // Held of 0 is until somebody else ends it
}

// simulated is a relay, seen from a keeper.
type simulated struct {
	answers []reply // in turn, until good
	good    time.Time
	lost    chan struct{}

	mu     sync.Mutex
	held   bool
	number int // of the connection
	asked  int
	dials  []time.Time // when the keeper connected
	ends   []time.Time // when a failed request or a reservation ended
	known  []time.Time // when the keeper could know of each of ends: at once, or after the request that it waited for
	asking bool
	begun  []time.Time // when each reservation began, as far as there was one
	stray  bool        // a renewal without a connection
	told   bool
}

func (s *simulated) signal() {
	select {
	case s.lost <- struct{}{}:
	default:
	}
}

// end is the end of the connection: by the relay, or after a request that failed.
func (s *simulated) end(number int) {
	s.mu.Lock()
	ended := s.held && s.number == number
	if ended {
		s.held = false
		s.ends = append(s.ends, time.Now())
		if !s.asking {
			s.known = append(s.known, time.Now())
		}
	}
	s.mu.Unlock()
	if ended {
		s.signal()
	}
}

func (s *simulated) ask(ctx context.Context, dial bool) ([]ma.Multiaddr, error) {
	s.mu.Lock()
	a := reply{OK: true}
	if time.Now().Before(s.good) {
		a = s.answers[s.asked%len(s.answers)]
	}
	s.asked++
	s.asking = true
	if dial {
		s.dials = append(s.dials, time.Now())
		s.number++
	}
	number := s.number
	s.stray = s.stray || !dial && !s.held
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(a.Takes):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		s.asking = false
		for len(s.known) < len(s.ends) {
			s.known = append(s.known, time.Now())
		}
	}()
	switch {
	case !a.OK, !dial && !s.held: // the connection is closed, as place does
		if dial || s.held {
			s.ends = append(s.ends, time.Now())
		}
		s.held = false
		s.signal()
		return nil, errors.New("no reservation")
	case dial:
		s.held = true
		s.begun = append(s.begun, time.Now())
		if a.Held > 0 {
			time.AfterFunc(min(a.Held, max(0, time.Until(s.good))), func() { s.end(number) })
		}
	}
	return []ma.Multiaddr{unlimitedAddr}, nil
}

// TestKeeperModel: a relay gives any answers, and connections end, are reported as ended and
// reservations become due in any order. The keeper connects at most ten times a minute, pauses
// longer after each failure, and has a reservation soon after the relay gives one again.
func TestKeeperModel(t *testing.T) {
	const bad = 10 * time.Minute
	ms := func(most time.Duration) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 50), rapid.Int64Range(0, most.Milliseconds())), func(n int64) time.Duration { return time.Duration(n) * time.Millisecond })
	}
	answers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) reply {
		return reply{rapid.Bool().Draw(t, "ok"), ms(2*relayTimeout).Draw(t, "takes"), ms(2*stableAfter).Draw(t, "held")}
	}), 1, 10)
	rapid.Check(t, func(r *rapid.T) {
		s := &simulated{answers: answers.Draw(r, "answers")}
		every := ms(renewInterval).Draw(r, "turns") + time.Second
		strays := rapid.SliceOfN(ms(bad), 0, 20).Draw(r, "strays") // ends of connections that change nothing
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s.lost, s.good = make(chan struct{}, 1), time.Now().Add(bad)
			for _, at := range strays {
				time.AfterFunc(at, s.signal)
			}
			turns := time.NewTicker(every)
			held := func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.held }
			k := &reservationKeeper{s.ask, held, s.lost, turns.C, func(at []ma.Multiaddr) { s.told = len(at) > 0 }}
			var running sync.WaitGroup
			running.Go(func() { k.run(ctx) })
			time.Sleep(bad + maxRetryPause + 2*relayTimeout + time.Second)
			synctest.Wait()
			cancel()
			running.Wait()
		})
		if most := maxRetryPause + 2*relayTimeout; !s.told || !s.held || most > time.Minute {
			r.Errorf("no reservation %v after the relay gives one", most)
		}
		if s.stray {
			r.Error("a reservation is renewed where there is no connection")
		}
		for i, at := range s.dials {
			if i >= 10 && at.Sub(s.dials[i-10]) < time.Minute {
				r.Errorf("eleven connections within %v", at.Sub(s.dials[i-10]))
			}
		}
		failures := 0
		for i, at := range s.dials[1:] {
			end := s.ends[i]
			if n := len(s.begun); n > 0 && s.begun[0].Before(end) {
				if s.known[i].Sub(s.begun[0]) >= stableAfter {
					failures = 0
				}
				s.begun = s.begun[1:]
			}
			if least := min(minRetryPause<<failures, maxRetryPause) / 2; at.Sub(end) < least {
				r.Errorf("connected again %v after failure %d, want %v", at.Sub(end), failures, least)
			}
			failures = min(failures+1, 10)
		}
	})
}

// TestReconnectsSpread: a relay of fifty sites restarts. Handshakes take its time, one after the other;
// all sites are back within half a minute, however long it was away.
func TestReconnectsSpread(t *testing.T) {
	const sites, handshake = 50, 100 * time.Millisecond
	for _, away := range []time.Duration{time.Second, 10 * time.Second, 2 * time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var (
				running         sync.WaitGroup
				mu              sync.Mutex
				up              = true
				busy            time.Time // until when the relay has to do
				handshakes      [sites]int
				placed          [sites]bool
				lost            []chan struct{}
				back            int
				first, returned time.Time
			)
			for i := range sites {
				lost = append(lost, make(chan struct{}, 1))
				ask := func(ctx context.Context, dial bool) ([]ma.Multiaddr, error) {
					mu.Lock()
					defer mu.Unlock()
					if !up {
						return nil, errors.New("connection refused")
					}
					if !dial {
						return []ma.Multiaddr{unlimitedAddr}, nil
					}
					handshakes[i]++
					busy = later(busy, time.Now()).Add(handshake)
					wait := time.Until(busy)
					mu.Unlock()
					time.Sleep(min(wait, relayTimeout))
					mu.Lock()
					if wait > relayTimeout || !up {
						return nil, errors.New("timeout")
					}
					placed[i] = true
					if back++; back == sites {
						first = time.Now()
					}
					return []ma.Multiaddr{unlimitedAddr}, nil
				}
				held := func() bool { mu.Lock(); defer mu.Unlock(); return placed[i] }
				k := &reservationKeeper{ask, held, lost[i], make(chan time.Time), func([]ma.Multiaddr) {}}
				running.Go(func() { k.run(ctx) })
			}
			time.Sleep(2 * stableAfter)
			mu.Lock()
			up, back = false, 0
			clear(placed[:])
			clear(handshakes[:])
			mu.Unlock()
			for _, l := range lost {
				l <- struct{}{}
			}
			time.Sleep(away)
			mu.Lock()
			up, returned = true, time.Now()
			mu.Unlock()
			time.Sleep(2 * time.Minute)
			cancel()
			running.Wait()
			most := 0
			for _, n := range handshakes {
				most = max(most, n)
			}
			if took := first.Sub(returned); back != sites || took > 30*time.Second || most > 5 {
				t.Errorf("after %v %d sites were back %v after the relay, with up to %d handshakes", away, back, took, most)
			} else {
				t.Logf("away %v: back after %v, with up to %d handshakes", away, took, most)
			}
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
