package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/rpc"
)

const listenMethod = "subscriptions/listen"

// Watch implements agents.Site: it subscribes to values, or, for the offer alone, to the list of
// tools. While emit runs, the site's notifications are merged into one update. A notification that
// violates the protocol ends the watch with an *UnexpectedError.
func (c *Client) Watch(ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if err := agents.CheckNumber("every", &r.Every); err != nil {
		return err
	}
	p := params{Notifications: &filter{Tools: r.OfferOnly}}
	for _, address := range r.Points {
		p.Notifications.URIs = append(p.Notifications.URIs, agents.PointURI(address))
	}
	if !r.OfferOnly {
		p.Meta.Values = &r.Every
	}
	w := &updates{id: c.id(), offerOnly: r.OfferOnly, some: make(chan struct{}, 1)}
	first := true
	return c.listen(ctx, w.id, p, w.heard, w.some, func() (pause time.Duration, err error) {
		u, ok, wrong := w.take()
		if wrong != nil || !ok {
			return 0, wrong
		}
		u.Offer = u.Offer && !first
		first = false
		return time.Duration(r.Every * float64(time.Second)), emit(u)
	})
}

var errOver = device.Faultf(device.Offline, "the site has ended the subscription: it is being stopped")

// listen subscribes, and calls pass when some has come and when the subscription has ended, but
// not during the pause that pass returned. It blocks until pass fails, ctx ends, or the
// subscription does.
func (c *Client) listen(ctx context.Context, id rpc.ID, p params, heard func(string, rpc.Raw), some <-chan struct{}, pass func() (pause time.Duration, err error)) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.call(watching, id, listenMethod, p, heard)
		ended <- err
	}()
	var pausing <-chan time.Time
	for {
		next := some
		if pausing != nil {
			next = nil
		}
		over, why := false, error(nil)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pausing:
			pausing = nil
			continue
		case <-next:
		case why = <-ended:
			over = true
		}
		pause, err := pass()
		if err != nil {
			return err
		}
		if pause > 0 {
			pausing = time.After(pause)
		}
		switch {
		case !over:
		case ctx.Err() != nil:
			return ctx.Err()
		case why == nil:
			return errOver
		default:
			return why
		}
	}
}

// updates holds the notifications of a watch that emit has not been called with yet.
type updates struct {
	id        rpc.ID
	offerOnly bool
	some      chan struct{}

	mu      sync.Mutex
	table   []tablePoint // of the last snapshot; nil before the first
	wrong   error        // the site does not keep to the protocol
	pending bool
	next    agents.Update // Offer where it is a snapshot
	asOf    time.Time     // when the ages and lengths in next were right
	at      map[int]int   // the places in next.Readings, by index in the table
}

func (w *updates) take() (u agents.Update, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.age()
	u, ok = w.next, w.pending
	w.next, w.pending, w.at = agents.Update{}, false, nil
	return u, ok, w.wrong
}

// age brings the ages and lengths in next up to date, because emit may take long. The lock is held.
func (w *updates) age() {
	now := time.Now()
	passed := now.Sub(w.asOf)
	w.asOf = now
	for i, r := range w.next.Readings {
		w.next.Readings[i] = r.After(passed)
	}
	for i, a := range w.next.Approvals {
		w.next.Approvals[i] = a.After(passed)
	}
}

// heard takes in a notification of the stream. It does not block.
func (w *updates) heard(method string, p rpc.Raw) {
	var n notified
	if p.Decode(&n) != nil || n.Meta.Subscription != w.id {
		return // another subscription's
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong != nil {
		return
	}
	switch method {
	case "notifications/subscriptions/acknowledged":
		if !w.offerOnly {
			if n.Meta.Values == nil {
				w.wrong = &RequestError{string(device.Unavailable), "the site sends no values: its version of agentsite is older; update it"}
				break
			}
			return
		}
	case "notifications/tools/list_changed":
		if !w.offerOnly {
			return // it was not asked for
		}
		w.next.Offer = true
	case "notifications/agentsite/values":
		if w.offerOnly {
			return
		}
		var v values
		err := p.Decode(&v)
		if err == nil {
			w.age()
			err = w.merge(&v)
		}
		if err != nil {
			w.wrong = &UnexpectedError{listenMethod, err}
		}
	default:
		return
	}
	w.pending = true
	select {
	case w.some <- struct{}{}:
	default:
	}
}

// notified are the parameters of a subscription's notifications.
type notified struct {
	Meta struct {
		Subscription rpc.ID   `json:"io.modelcontextprotocol/subscriptionId"`
		Values       *float64 `json:"agentsite/values"` // of the acknowledgement
	} `json:"_meta"`
}

// These limit the notifications of a site; those of readings and sites hold until emit is called.
const (
	maxTable     = 4096 // points
	maxApprovals = 256
	maxSites     = 256
	maxText      = 8 << 10 // bytes in all texts of a reading
)

// values are the parameters of notifications/agentsite/values.
type values struct {
	Points    []tablePoint       `json:"points"`
	Readings  []tableReading     `json:"readings"`
	Approvals []agents.Approval  `json:"approvals"`
	Stopped   *bool              `json:"emergency_stop"`
	Sites     []agents.StopState `json:"sites"`
	Missed    []agents.Missed    `json:"not_answered"`
}

type tablePoint struct {
	Point string `json:"point"`
	Unit  string `json:"unit"`
}

type tableReading struct {
	Index   *int                 `json:"i"`
	Value   device.Value         `json:"value"`
	Age     float64              `json:"age_seconds"`
	Quality device.Quality       `json:"quality"`
	Why     string               `json:"why"`
	Output  *agents.OutputDetail `json:"output"`
}

// merge adds a notification to the next update. The lock is held.
func (w *updates) merge(v *values) error {
	switch {
	case len(v.Points) > maxTable || len(v.Approvals) > maxApprovals || len(v.Sites) > maxSites || len(v.Missed) > maxSites:
		return errors.New("it is too large")
	case v.Points == nil && w.table == nil:
		return errors.New("it does not begin with the points")
	case v.Points != nil:
		if err := checkTable(v.Points); err != nil {
			return err
		}
		w.table, w.next, w.at = v.Points, agents.Update{Offer: true}, nil
	}
	if w.at == nil {
		w.at = make(map[int]int)
	}
	for _, r := range v.Readings {
		switch {
		case r.Index == nil || *r.Index < 0 || *r.Index >= len(w.table):
			return errors.New("a reading is of no point")
		case !r.Value.Finite() || !length(r.Age) || r.Output != nil && !(r.Output.Goal.Finite() && r.Output.Set.Value.Finite() && r.Output.Measured.Value.Finite()), !r.lengths():
			return errors.New("a number is NaN, infinite or negative")
		case r.texts() > maxText:
			return errors.New("a reading is too long")
		}
		out := r.reading(w.table[*r.Index])
		if at, told := w.at[*r.Index]; told {
			w.next.Readings[at] = out
			continue
		}
		w.at[*r.Index] = len(w.next.Readings)
		w.next.Readings = append(w.next.Readings, out)
	}
	for _, a := range v.Approvals {
		if !length(a.Left) || !length(a.Holds) {
			return errors.New("an approval's length is NaN, infinite or negative")
		}
	}
	if v.Approvals != nil {
		w.next.Approvals = v.Approvals
	}
	if v.Missed != nil {
		w.next.Missed = v.Missed
	}
	if v.Stopped != nil {
		v.Sites = append(v.Sites, agents.StopState{Stopped: *v.Stopped})
	}
	for _, s := range v.Sites {
		i := slices.IndexFunc(w.next.Stops, func(have agents.StopState) bool { return have.Site == s.Site })
		if i < 0 {
			w.next.Stops = append(w.next.Stops, s)
		} else {
			w.next.Stops[i] = s
		}
	}
	if len(w.next.Stops) > maxSites+1 { // by other names in each notification
		return errors.New("it is too large")
	}
	return nil
}

// checkTable refuses addresses that no site has, and those that come twice.
func checkTable(table []tablePoint) error {
	seen := make(map[string]bool, len(table))
	for _, p := range table {
		if !addressForm().MatchString(p.Point) || seen[p.Point] {
			return fmt.Errorf("%.60q is no address, or comes twice", p.Point)
		}
		seen[p.Point] = true
	}
	return nil
}

// length reports whether a number is one of seconds.
func length(s float64) bool { return s >= 0 && !math.IsInf(s, 1) }

// lengths reports whether the lengths of an output are some.
func (r *tableReading) lengths() bool {
	o := r.Output
	return o == nil || !slices.ContainsFunc([]float64{
		o.Left, o.Rest, o.MaxOn.Left, o.MaxOn.Of, o.Duty.Left,
		o.Duty.Of, o.Duty.Within, o.Duty.Assumed, o.Set.Age, o.Measured.Age,
	}, func(n float64) bool { return !length(n) })
}

// texts returns the length of all texts.
func (r *tableReading) texts() int {
	n := len(r.Value.Text()) + len(r.Quality) + len(r.Why)
	if o := r.Output; o != nil {
		n += len(o.Goal.Text()) + len(o.Set.Value.Text()) + len(o.Measured.Value.Text()) +
			len(o.Holder) + len(o.Needs) + len(o.Fault) + len(o.Why)
	}
	return n
}

func (r *tableReading) reading(of tablePoint) agents.Reading {
	out := agents.Reading{Point: of.Point, Unit: of.Unit, Value: r.Value, Age: r.Age, Quality: r.Quality, Why: r.Why}
	if r.Quality == "" {
		out.Quality = device.Good
	}
	if o := r.Output; o != nil {
		out.Detail = o.Doing()
	}
	return out
}
