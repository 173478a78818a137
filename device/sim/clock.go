package sim

import "time"

// clock is the simulated time, in seconds since the device was opened.
type clock struct {
	start time.Time
	speed float64 // simulated seconds per second
}

func startClock(speed float64) clock { return clock{start: time.Now(), speed: speed} }

// now returns the simulated time.
func (c clock) now() float64 { return time.Since(c.start).Seconds() * c.speed }

// until returns the real duration until a simulated time.
func (c clock) until(t float64) time.Duration { return c.real(t - c.now()) }

// real returns the real duration of simulated seconds.
func (c clock) real(seconds float64) time.Duration {
	return time.Duration(seconds / c.speed * float64(time.Second))
}
