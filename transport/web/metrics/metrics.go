// Package metrics serves a site's readings and figures in the text format of Prometheus (0.0.4). It imports
// transport/web for the route, node for what a caller may read, and the vocabularies below those.
//
// Names follow prometheus.io/docs/practices/naming, and those of processes the guidelines for client
// libraries. The readings are one family with the unit as a label, as in ESPHome, and not one for each
// quantity, as in Home Assistant: owners choose units, so that a family for each would have no end, and
// "agentsite history --openmetrics" and remote write have the same one.
package metrics

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/transport/web"
)

// Outputs is the state of the outputs.
type Outputs interface {
	Status() []guard.Status
	Stopped() bool
}

// Report has the figures of other parts of the site.
type Report struct {
	Journal, History int64  // bytes on the disk
	Free             int64  // bytes, negative where that is not known
	Entries          uint64 // ever written to the journal
	Sessions         int    // of older revisions of MCP
	Waiting          int    // notifications that are not sent
	Sent             int    // messages to receivers of notifications, since the start
	Failing          int    // receivers whose last message failed
}

// Options are the parts of a site that have metrics.
type Options struct {
	Node    *node.Node
	Hub     *node.Hub
	Outputs Outputs
	Returns *Returns
	Version string
	Started time.Time
	Now     func() (time.Time, bool) // the site's clock, and whether it is known
	Report  func() Report
}

// start is when a site started, in Unix seconds.
type start struct{ atomic.Int64 }

// by returns the start by the site's clock. It is the same each time, unless the clock was set.
func (s *start) by(o *Options) float64 {
	now, _ := o.Now()
	at := now.Add(-time.Since(o.Started)).Unix()
	if before := s.Load(); at-before > 1 || before-at > 1 {
		s.Store(at)
	}
	return float64(s.Load())
}

// Returns counts how often outputs returned to safe without being asked to. It is safe for concurrent
// use, and empty when it is zero.
type Returns struct {
	mu     sync.Mutex
	causes map[string]uint64 // by guard.CauseWord
	broken map[string]uint64 // leases that were cut short, by output
}

// Add counts a return of an output, with its cause as a device.Reading has it.
func (r *Returns) Add(output, cause string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.causes == nil {
		r.causes, r.broken = make(map[string]uint64), make(map[string]uint64)
	}
	r.causes[guard.CauseWord(cause)]++
	if guard.Broke(cause) {
		r.broken[output]++
	}
}

func (r *Returns) of(cause string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.causes[cause]
}

func (r *Returns) brokenOf(output string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken[output]
}

// Route returns the route of /metrics. A caller gets the points that it may read, the state of the site
// if it may ask for that, and the figures of the whole site if it may read all. Everything is read when it
// is asked for. The lines are written by hand, because the client library adds 4.4 MB to the ARMv6 binary.
func Route(o Options) web.Route {
	var last atomic.Int64 // length of the last answer
	var started start
	serve := func(w http.ResponseWriter, r *http.Request, c web.Caller) {
		counts, partly := o.Node.Counts(c.Who)
		offer, err := o.Node.Offer(r.Context(), c.Who)
		var samples []node.Sample
		if err == nil && (len(offer.Read) > 0 || partly != nil) {
			samples, err = o.Node.Samples(r.Context(), c.Who)
		}
		if err != nil {
			http.Error(w, err.Error(), status(device.AsFault(err).Kind))
			return
		}
		out := text{buf: make([]byte, 0, last.Load()+1024)}
		out.readings(samples, o.Returns)
		if offer.Status {
			out.site(&o, started.by(&o))
		}
		if partly == nil {
			out.whole(&o, &counts)
			out.process(started.by(&o))
		}
		last.Store(int64(len(out.buf)))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(out.buf)
	}
	return web.Route{Pattern: "GET /metrics", Admission: web.Principals, Serve: serve}
}

// status returns the status of HTTP for a refusal.
func status(kind device.FaultKind) int {
	switch kind {
	case device.Denied:
		return http.StatusForbidden
	case device.Busy:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// readings writes the metrics of points.
func (t *text) readings(all []node.Sample, returns *Returns) {
	t.begin("agentsite_reading", gauge,
		"What was read of a point, or written to it, while that is known; a text is 1 in one of its values.")
	for i := range all {
		s := &all[i]
		switch {
		case s.Quality != device.Good:
		case s.Value.Type() == device.TypeText:
			for _, v := range s.Point.Values {
				t.point(s.Address).label("value", v).number(flag(v == s.Value.Text()))
			}
		case !s.Value.IsZero():
			t.point(s.Address)
			if s.Point.Unit != "" {
				t.label("unit", s.Point.Unit)
			}
			t.number(s.Value.Number())
		}
	}
	t.begin("agentsite_reading_quality", gauge, "1 for the quality that a point's reading has.")
	for i := range all {
		for _, q := range qualities {
			t.point(all[i].Address).label("quality", string(q)).number(flag(q == all[i].Quality))
		}
	}
	t.begin("agentsite_reading_timestamp_seconds", gauge, "When a point that is read at an interval was last read well.")
	for i := range all {
		if !all[i].Good.IsZero() {
			t.point(all[i].Address).number(unix(all[i].Good))
		}
	}
	t.begin("agentsite_output_away_from_safe", gauge, "1 while an output is not known to be at its safe value.")
	eachOutput(all, func(s *node.Sample) { t.point(s.Address).number(flag(s.Away)) })
	t.begin("agentsite_output_lease_seconds", gauge, "What is left of an output's lease; 0 without one.")
	eachOutput(all, func(s *node.Sample) { t.point(s.Address).number(s.Left.Seconds()) })
	t.begin("agentsite_output_broken_leases_total", counter,
		"Leases that were cut short: not by their length, a caller, a stop or the configuration.")
	eachOutput(all, func(s *node.Sample) { t.point(s.Address).number(float64(returns.brokenOf(s.Address))) })
}

var qualities = [...]device.Quality{device.Good, device.Stale, device.Bad}

func eachOutput(all []node.Sample, do func(*node.Sample)) {
	for i := range all {
		if all[i].Point.Kind.Output() {
			do(&all[i])
		}
	}
}

// site writes the metrics of the operation status.
func (t *text) site(o *Options, started float64) {
	now, known := o.Now()
	t.begin("agentsite_info", gauge, "The program.")
	t.label("version", o.Version).number(1)
	t.one("agentsite_emergency_stop", gauge, "1 while the emergency stop is latched.", flag(o.Outputs.Stopped()))
	t.one("agentsite_start_time_seconds", gauge, "When the site started, by its clock.", started)
	t.one("agentsite_time_seconds", gauge, "The site's clock.", unix(now))
	t.one("agentsite_clock_known", gauge, "0 while the site's clock is a guess.", flag(known))
}

// whole writes the metrics of all points and all callers together.
func (t *text) whole(o *Options, counts *node.Counts) {
	readings, coalesced, watchers := o.Hub.Counts()
	away := 0
	for _, s := range o.Outputs.Status() {
		if !s.Safe {
			away++
		}
	}
	t.one("agentsite_readings_total", counter, "Readings taken in.", float64(readings))
	t.one("agentsite_changes_coalesced_total", counter,
		"Changes that a slow watcher was told of together.", float64(coalesced))
	t.one("agentsite_watchers", gauge, "Open subscriptions.", float64(watchers))
	t.one("agentsite_outputs_away_from_safe", gauge,
		"Outputs that are not known to be at their safe value.", float64(away))
	t.begin("agentsite_returns_total", counter,
		"Returns of outputs to safe that no caller asked for, by their cause.")
	for _, cause := range guard.Causes() {
		t.label("cause", cause).number(float64(o.Returns.of(cause)))
	}
	t.begin("agentsite_calls_total", counter, "Calls of operations, also of those that were refused.")
	for op, word := range operations {
		if word != "" {
			t.label("operation", word).number(float64(counts.Calls[op]))
		}
	}
	t.begin("agentsite_refusals_total", counter, "Calls that were refused, by the kind of fault.")
	for _, r := range counts.Refused {
		t.label("kind", string(r.Kind)).number(float64(r.Count))
	}
	t.one("agentsite_unauthenticated_total", counter,
		"Requests whose token or key is not known.", float64(counts.Unauthenticated))
	t.one("agentsite_approvals_waiting", gauge, "Calls that wait for an owner.", float64(counts.Approvals))
	r := o.Report()
	t.one("agentsite_sessions", gauge, "Sessions of older revisions of MCP.", float64(r.Sessions))
	t.one("agentsite_notifications_waiting", gauge, "Notifications that are not sent yet.", float64(r.Waiting))
	t.one("agentsite_notification_messages_total", counter, "Messages sent to receivers.", float64(r.Sent))
	t.one("agentsite_notification_receivers_failing", gauge, "Receivers whose last message failed.", float64(r.Failing))
	t.one("agentsite_journal_entries_total", counter, "Entries ever written to the journal.", float64(r.Entries))
	t.one("agentsite_journal_bytes", gauge, "Size of the journal.", float64(r.Journal))
	t.one("agentsite_history_bytes", gauge, "Size of the stored history.", float64(r.History))
	if r.Free >= 0 {
		t.one("agentsite_disk_free_bytes", gauge, "Room left where the site keeps its data.", float64(r.Free))
	}
}

// operations are the words of operations in the documentation.
var operations = [...]string{
	agents.OpPoints: "points", agents.OpRead: "read", agents.OpWatch: "watch", agents.OpHistory: "history",
	agents.OpMove: "move", agents.OpStop: "stop", agents.OpShow: "show", agents.OpCapture: "capture",
	agents.OpStatus: "status", agents.OpWhy: "why", agents.OpAsk: "ask",
}
