package agents

// WatchRequest asks for values as they change.
type WatchRequest struct {
	Points []string // all that may be read when left out
	// OfferOnly asks for no values: only Update.Offer is told.
	OfferOnly bool
	// Every is the shortest time between two updates, in seconds: 0 to 3600.
	Every float64
	Terms
}

// Update is what has changed since the update before. The first of a watch, and each with
// Offer, is a snapshot: it tells everything, and what was told before counts no more.
//
// A value that is not told again is still what it was told to be: that a reading is stale,
// or that a site of a group does not answer, is a change. Ages and lengths are those of the
// moment at which the update was made; its readings have no Time.
type Update struct {
	Offer     bool       // what may be asked for may have changed, see Site.Offer; never in the first
	Readings  []Reading  // of outputs with what moves of their Detail: the rest is in Point
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
}

// StopState says whether a site's emergency stop is latched.
type StopState struct {
	Site    string `json:"site,omitzero"` // in a group
	Stopped bool   `json:"emergency_stop"`
}
