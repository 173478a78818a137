package device

import "time"

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

// Change is a new value of a state or an output, or an event.
type Change struct {
	At     time.Time
	Value  Value  // none where it could not be read
	Holder string // of an output
	Cause  string // why an output went to safe last
}
