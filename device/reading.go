package device

import (
	"math"
	"time"
)

// Quality says how far a reading can be trusted.
type Quality string

const (
	Good  Quality = "good"  // fresh and plausible
	Stale Quality = "stale" // the last good value, older than it should be
	Bad   Quality = "fault" // the device could not be read; Reading.Why has the reason
)

// Reading is the value of a point at a time. A driver fills Point with the point's own
// name; above the drivers it is the whole address, device/point.
type Reading struct {
	Point   string
	Value   Value
	Quality Quality
	At      time.Time // with Go's monotonic part: ages hold without a set clock
	Why     string    // for Bad: one sentence
	Holder  string    // of an output, as the guard's keeper reports it; no driver sets it
	Cause   string    // why an output went to safe last
	Effect  string    // of an output: whether it had the effect that its owner expects, in the guard's words
}

// outlast is the delay by other chips that a sample survives: a USB adapter ends a hanging transfer
// after 4 s.
const outlast = 5 * time.Second

// GoodFor returns for how long a good reading that is taken every period stays good without a
// successor: three periods, and up to four where a hanging chip on its bus takes that long.
func GoodFor(period time.Duration) time.Duration {
	return max(3*period, min(4*period, period+outlast))
}

// Image is one still picture.
type Image struct {
	MIME string // image/jpeg or image/png
	Data []byte
	At   time.Time
}

// Summary sums up the readings of a measurement from At until End.
type Summary struct {
	At, End              time.Time
	Min, Mean, Max, Last float64 // of the good readings
	Count, Good          int     // readings, and the good ones of them
}

// The bounds of a Summary from outside, whose sums stay finite.
const (
	maxSummed = 100_000
	maxNumber = 1e300
)

// Check refuses an impossible summary: without a good reading, of more than 100,000, or with
// numbers that are not finite or above 1e300. It also refuses a mean or last value outside the
// minimum and maximum.
func (s Summary) Check() error {
	for _, n := range []float64{s.Min, s.Mean, s.Max, s.Last} {
		if !(math.Abs(n) <= maxNumber) {
			return Faultf(Invalid, "%v is too large, or no number", n)
		}
	}
	off := (math.Abs(s.Min) + math.Abs(s.Max)) * 1e-6 // means are rounded
	switch {
	case s.Good < 1 || s.Good > maxSummed:
		return Faultf(Invalid, "a summary is of 1 to %d readings, not of %d", maxSummed, s.Good)
	case s.Min > s.Max || s.Mean < s.Min-off || s.Mean > s.Max+off || s.Last < s.Min || s.Last > s.Max:
		return Faultf(Invalid, "the mean, %v, or the last value, %v, is not between the minimum, %v, and the maximum, %v", s.Mean, s.Last, s.Min, s.Max)
	}
	return nil
}

// Change is a new value of a state or an output, or an event.
type Change struct {
	At     time.Time
	Value  Value  // none where it could not be read
	Holder string // of an output
	Cause  string // why an output went to safe last
}
