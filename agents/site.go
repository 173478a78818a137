package agents

import (
	"context"
	"time"

	"agentsite/device"
)

// Site has the operations on a site, or on several that are presented as one. The node, the client
// of a remote site and a group implement it; a package that needs fewer methods declares its own
// interface. Errors are faults with a kind (see device.AsFault), *ApprovalNeeded where an owner has
// to approve the call first, and *Unreached. After any other error the outcome is unknown. A
// principal learns nothing about points that it may not see. Methods are safe for concurrent use.
type Site interface {
	// Offer returns the operations and points that p may use. The same pointer is the same offer.
	Offer(ctx context.Context, p Principal) (*Offer, error)
	Points(ctx context.Context, p Principal, r SiteRequest) (PointList, error)
	Read(ctx context.Context, p Principal, r ReadRequest) (Readings, error)
	// Watch tells p about changes. It calls emit from one goroutine: first with a snapshot, then
	// after changes, but no more often than the request says. No change after the snapshot is
	// missed. Changes while emit runs are merged into the next update; emit may call the site.
	// Between two snapshots readings are of the same points. An update that begins after the answer
	// to a move has the changes of that move, unless an earlier update had them.
	//
	// Points that the request names and that are not there are refused as invalid. Readings are
	// charged like those of Read. While a permission's rate is used up, the readings of a snapshot
	// come without a value, stale, and follow later.
	//
	// Watch blocks until ctx ends, emit fails (both errors are returned), the permission ends
	// (denied) or, for a remote site, the site is gone.
	Watch(ctx context.Context, p Principal, r WatchRequest, emit func(Update) error) error
	History(ctx context.Context, p Principal, r HistoryRequest) (History, error)
	// Why explains a point that p may read.
	Why(ctx context.Context, p Principal, r WhyRequest) (Why, error)
	Move(ctx context.Context, p Principal, r MoveRequest) (Output, error)
	Stop(ctx context.Context, p Principal, r SiteRequest) (Answers[Stopped], error)
	Show(ctx context.Context, p Principal, r ShowRequest) error
	Capture(ctx context.Context, p Principal, r CaptureRequest) (Picture, error)
	Status(ctx context.Context, p Principal, r SiteRequest) (Answers[Status], error)
}

// Unreached is the error of a call that its site never saw.
type Unreached struct{ Err error }

func (u *Unreached) Error() string { return u.Err.Error() }
func (u *Unreached) Unwrap() error { return u.Err }

// ApprovalNeeded is the error of a call that its site's owner has to approve. The very
// same call with Terms.Approval set to State is made once that has happened.
type ApprovalNeeded struct{ Says, State string }

func (e *ApprovalNeeded) Error() string     { return e.Says }
func (e *ApprovalNeeded) FaultKind() string { return string(device.Unavailable) }

// SiteRequest asks about a site as a whole.
type SiteRequest struct {
	Site  string `json:"site,omitzero" jsonschema:"all when left out"` // in a group: one of its sites
	Terms `json:"-"`
}

// PointList answers OpPoints.
type PointList struct {
	Points []Point  `json:"points"`
	Missed []Missed `json:"not_answered,omitzero"`
}

// Point describes a point of a site.
type Point struct {
	Point       string       `json:"point"` // its address
	Kind        device.Kind  `json:"kind"`
	Name        string       `json:"name,omitzero"` // for people, where the owner gave one
	Unit        string       `json:"unit,omitzero"` // a UCUM code
	Description string       `json:"description,omitzero"`
	Device      string       `json:"device,omitzero"` // the model
	Min         *float64     `json:"min,omitzero"`
	Max         *float64     `json:"max,omitzero"`
	Values      []string     `json:"values,omitzero"`
	Safe        device.Value `json:"safe,omitzero"`        // of an output, as all that follow
	MaxSeconds  float64      `json:"max_seconds,omitzero"` // away from safe; 0 for without limit
	Limits      string       `json:"limits,omitzero"`
	Confirm     string       `json:"confirm,omitzero"` // "owner" if an owner must approve each move
}

// Answers is the answer to OpStop and OpStatus: that of one site, or of each site of a group.
type Answers[T any] struct {
	Sites  []T      `json:"sites"`
	Missed []Missed `json:"not_answered,omitzero"`
}

// Only returns the answer of a site that answered alone, and otherwise a.
func (a Answers[T]) Only() any {
	if len(a.Sites) == 1 {
		return a.Sites[0]
	}
	return a
}

// Missed is a site of a group that did not answer.
type Missed struct {
	Site string `json:"site"`
	Why  string `json:"why"`
}

// ReadRequest asks for the latest readings.
type ReadRequest struct {
	Points []string `json:"points,omitzero" jsonschema:"all when left out"`
	Terms  `json:"-"`
	// Detail asks for Reading.Detail of outputs, where the site has it.
	Detail bool `json:"-"`
}

// Readings answers OpRead, in the order of the request.
type Readings struct {
	Readings []Reading `json:"readings"`
	Missed   []Missed  `json:"not_answered,omitzero"`
}

// Reading is a point's latest reading.
type Reading struct {
	Point   string         `json:"point"`
	Value   device.Value   `json:"value"`
	Unit    string         `json:"unit,omitzero"`
	Time    string         `json:"time,omitzero"` // RFC 3339 in UTC; "" where there was no reading
	Age     float64        `json:"age_seconds"`
	Quality device.Quality `json:"quality"`
	Why     string         `json:"why,omitzero"`
	Effect  string         `json:"effect,omitzero"` // of an output: as in Output

	Detail *OutputDetail `json:"-"`
}

// OutputState is the current state of an output, beside its value.
type OutputState struct {
	Goal   device.Value `json:"going_to,omitzero"` // on a ramp
	Holder string       `json:"held_by,omitzero"`
	Left   float64      `json:"seconds_left,omitzero"` // of the lease
	Rest   float64      `json:"rest_seconds,omitzero"` // until its own limits permit a move
	Needs  string       `json:"needs,omitzero"`        // the unmet requirement
	Fault  string       `json:"fault,omitzero"`        // why the hardware did not follow
	Why    string       `json:"returned_because,omitzero"`
	Effect string       `json:"effect,omitzero"` // as in Output
	// Latched: its effect failed, and it is not moved before an owner's reset.
	Latched bool `json:"waits_for_reset,omitzero"`
}

// OutputDetail has the limits and the current state of an output. A fault is told in Why.
type OutputDetail struct {
	Safe    device.Value `json:"safe,omitzero"` // always there, except in Doing
	Max     float64      `json:"max_seconds,omitzero"`
	Limits  string       `json:"limits,omitzero"`
	Confirm string       `json:"confirm,omitzero"`
	OutputState
	// MaxOn and Duty are there while the output is away from safe, and always in an answer to OpWhy,
	// where it has such a limit.
	MaxOn Allowance `json:"max_on,omitzero"`
	Duty  Allowance `json:"duty,omitzero"`
	// Set is the value that was written last, and Measured the one that was read back since then: both
	// are there, or none. What is read back again and is the same is not told to a watch.
	Set      Aged `json:"set,omitzero"`
	Measured Aged `json:"measured,omitzero"`
	// State orders what is told of the output's leases: of two with the same upper 32 bits, which stand
	// for a run of the site's guard, the higher one is later. 0 has no order.
	State int64 `json:"state,omitzero"`
	// Others is set for agents of the site only. The output's holder, or the last caller to release
	// it, is neither an owner nor another such agent.
	Others bool `json:"-"`
}

// Doing returns the output's current state without its limits.
func (d OutputDetail) Doing() *OutputDetail {
	d.Safe, d.Max, d.Limits, d.Confirm = device.Value{}, 0, "", ""
	return &d
}

// After returns d when a time has passed: with less left of its lengths.
func (d OutputDetail) After(passed time.Duration) OutputDetail {
	d.Left, d.Rest = later(d.Left, -passed), later(d.Rest, -passed)
	if !d.Measured.Value.IsZero() {
		d.Set.Age, d.Measured.Age = later(d.Set.Age, passed), later(d.Measured.Age, passed)
	}
	d.MaxOn.Left, d.Duty.Left = later(d.MaxOn.Left, -passed), later(d.Duty.Left, -passed)
	return d
}

// HistoryRequest asks how a point went until To, from From on or for Hours. Times are RFC 3339.
type HistoryRequest struct {
	Point string   `json:"point"`
	From  string   `json:"from,omitzero"`
	To    string   `json:"to,omitzero" jsonschema:"now when left out"`
	Hours *float64 `json:"hours,omitzero" jsonschema:"12 when left out"`
	Steps *float64 `json:"steps,omitzero" jsonschema:"about, 24 when left out"`
	Terms `json:"-"`
}

// History is a point over a period. A measurement is given in steps, without those that have no
// good readings; any other point is given by its changes.
type History struct {
	Point   string   `json:"point"`
	Unit    string   `json:"unit,omitzero"`
	Length  float64  `json:"step_seconds,omitzero"`
	Min     *float64 `json:"min,omitzero"`
	Mean    *float64 `json:"mean,omitzero"`
	Max     *float64 `json:"max,omitzero"`
	Steps   []Step   `json:"steps,omitzero"`
	Changes []Event  `json:"changes,omitzero"` // the first is the value at the beginning, where that is known
	Cut     bool     `json:"cut_off,omitzero"` // there were more changes, before these
}

// Step is a measurement over one step of its history, from Time on. A step begins at a multiple
// of its length by the site's local time.
type Step struct {
	Time string  `json:"time"`
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
	Last float64 `json:"last"`
	Good float64 `json:"good,omitzero"` // the share of good readings; left out where all were
}

// Event is a change of a state or an output, or an event, in a history. An answer to OpWhy also has
// the call that caused the change, where known, and calls that caused none. For such a call, Value
// is the requested value.
type Event struct {
	Time   string       `json:"time"`
	Value  device.Value `json:"value"` // null where it could not be read
	Holder string       `json:"held_by,omitzero"`
	Cause  string       `json:"because,omitzero"` // why an output went to safe

	By      string   `json:"by,omitzero"` // the caller
	Via     []string `json:"via,omitzero"`
	Tool    string   `json:"tool,omitzero"`
	Outcome string   `json:"outcome,omitzero"` // "done", "running", or the kind of the fault
	Says    string   `json:"says,omitzero"`    // the fault
	Times   int      `json:"times,omitzero"`   // how often the same was asked in a row, since Time
}

// MoveRequest asks to move an output, and to hold it there for a time. Without a value it
// releases the output: that returns to safe.
type MoveRequest struct {
	Output string       `json:"output"`
	Value  device.Value `json:"value,omitzero" jsonschema:"true or false for a switch, a number within its range for a level; null returns it to safe"`
	For    *float64     `json:"for,omitzero" jsonschema:"seconds, then back to safe; 60 when left out"` // A release takes none.
	Terms  `json:"-"`
}

// Stopped is a site whose emergency stop is latched.
type Stopped struct {
	Site    string  `json:"site,omitzero"` // in a group
	Stopped bool    `json:"emergency_stop"`
	Outputs []Proof `json:"outputs"`
}

// ShowRequest asks to show a text.
type ShowRequest struct {
	Display string `json:"display"`
	Text    string `json:"text"`
	Terms   `json:"-"`
}

// CaptureRequest asks for a picture.
type CaptureRequest struct {
	Camera string `json:"camera"`
	Terms  `json:"-"`
}

// Picture answers OpCapture.
type Picture struct {
	Camera string `json:"camera"`
	Time   string `json:"time"`
	MIME   string `json:"mime_type"`
	Size   int    `json:"bytes"`
	Data   []byte `json:"-"`
}

// Status holds the state of a site.
type Status struct {
	Site      string         `json:"site"`
	Version   string         `json:"version"`
	Uptime    float64        `json:"uptime_seconds"`
	Simulated bool           `json:"simulated,omitzero"`
	Stopped   bool           `json:"emergency_stop"`
	Devices   []DeviceStatus `json:"devices"`
	Moved     []OutputStatus `json:"outputs_away_from_safe"`
	Blocked   []OutputStatus `json:"outputs_not_ready,omitzero"` // at safe, where their own limits keep them, or their effect failed
}

// DeviceStatus holds the state of a device.
type DeviceStatus struct {
	Device string   `json:"device"`
	Model  string   `json:"model"`
	Faults []string `json:"faults,omitzero"`
}

// OutputStatus holds an output's value and the reason for it.
type OutputStatus struct {
	Output string       `json:"output"`
	Value  device.Value `json:"value"`
	OutputState
}
