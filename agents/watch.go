package agents

import (
	"math"
	"time"
)

// WatchRequest asks for values as they change.
type WatchRequest struct {
	Points []string // all that may be read when left out
	// OfferOnly asks for no values: only Update.Offer is told.
	OfferOnly bool
	// Every is the shortest time between two updates, in seconds: 0 to 3600.
	Every float64
	Terms
}

// Update holds the changes since the previous update. The first of a watch, and each with Offer, is
// a snapshot: it holds everything and replaces all earlier updates.
//
// A value that an update leaves out has not changed: staleness of a reading and a site of a group
// that stops answering are changes. Ages and lengths are those at the moment when the update was
// made; its readings have no Time.
type Update struct {
	Offer     bool       // the offer may have changed, see Site.Offer; never in the first
	Readings  []Reading  // for outputs with the changing part of their Detail: the rest is in Point
	Approvals []Approval // all, where they have changed; nil where they have not
	Stops     []StopState
	Missed    []Missed // of a group: all sites that do not answer; nil where that has not changed
}

// Approval is a call that waits for an owner's approval: one of the watcher's own, or, for
// an owner, anybody's.
type Approval struct {
	Handle string  `json:"handle"`
	Caller string  `json:"caller"`
	Tool   string  `json:"tool"`
	Args   string  `json:"arguments"` // JSON
	Left   float64 `json:"seconds_left"`
	Holds  float64 `json:"would_hold_seconds,omitzero"` // a move, when it was asked for, within all limits
}

// StopState says whether a site's emergency stop is latched.
type StopState struct {
	Site    string `json:"site,omitzero"` // in a group
	Stopped bool   `json:"emergency_stop"`
}

// After returns r when d has passed: older, and with less left of its lengths.
func (r Reading) After(d time.Duration) Reading {
	r.Age = later(r.Age, d)
	if r.Detail != nil {
		r.Detail = new(r.Detail.After(d))
	}
	return r
}

// After returns a when d has passed.
func (a Approval) After(d time.Duration) Approval {
	a.Left = later(a.Left, -d)
	return a
}

// later adds d to a length in seconds, which is sent to the millisecond and never below 0.
func later(seconds float64, d time.Duration) float64 {
	if seconds += d.Seconds(); seconds > 1e12 { // a site may send any number
		return seconds
	}
	return max(0, math.Round(seconds*1000)/1000)
}
