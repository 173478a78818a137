package sim

import "time"

// clock is simulated time: seconds since the device was opened.
type clock struct {
	start time.Time
	speed float64 // simulated seconds in a second
}

func startClock(speed float64) clock { return clock{start: time.Now(), speed: speed} }

// now is the present simulated time.
func (c clock) now() float64 { return time.Since(c.start).Seconds() * c.speed }

// until is how long it really takes until a simulated time.
func (c clock) until(t float64) time.Duration { return c.real(t - c.now()) }

// real is how long a number of simulated seconds really takes.
func (c clock) real(seconds float64) time.Duration {
	return time.Duration(seconds / c.speed * float64(time.Second))
}
