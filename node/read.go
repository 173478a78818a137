package node

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

// Points lists the points that p sees.
func (n *Node) Points(
	_ context.Context, p agents.Principal, r agents.SiteRequest,
) (out agents.PointList, err error) {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpPoints, Effect: agents.Reads}, Terms: r.Terms, Args: none}
	v := n.enter(&c)
	if err := n.begin(&c, oneSite(r)); err != nil {
		return out, err
	}
	defer c.End()
	out.Points, _ = v.list() // an output without a policy goes with the reload that is under way
	return out, nil
}

// oneSite refuses a request that names a site: there is one here.
func oneSite(r agents.SiteRequest) error {
	if r.Site != "" {
		return device.Faultf(device.Invalid, "site: there is one site here; leave it out")
	}
	return nil
}

// Read returns the latest readings.
func (n *Node) Read(_ context.Context, p agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpRead, Points: r.Points, Effect: agents.Reads}, Terms: r.Terms, Args: r}
	v := n.enter(&c)
	if err := n.begin(&c, v.checkPoints(r.Points)); err != nil {
		return out, err
	}
	defer c.End()
	points := r.Points
	if len(points) == 0 {
		points = v.offer().Read
	}
	out.Readings = make([]agents.Reading, len(points))
	for i, address := range points {
		out.Readings[i] = n.reading(v, address)
		if r.Detail {
			out.Readings[i].Detail = v.detail(p, address)
		}
	}
	return out, nil
}

// checkPoints refuses points that are not there, and more than there are.
func (v *view) checkPoints(points []string) error {
	for _, address := range points {
		if err := v.checkRead("points", address); err != nil {
			return err
		}
	}
	if len(points) > v.read {
		return device.Faultf(device.Invalid, "points: name each point once; there are %d", v.read)
	}
	return nil
}

// checkRead refuses a point that is not there, or may not be read.
func (v *view) checkRead(key, address string) error {
	if v.mayRead(address) {
		return nil
	}
	return v.offer().CheckPoint(agents.OpRead, key, address, device.Value{}, v.offer().Read)
}

// reading returns the latest reading of a point that exists.
func (n *Node) reading(v *view, address string) agents.Reading {
	r, _ := n.hub.Latest(address)
	out := v.point(address).reading(r)
	if r.Point != "" {
		out.Time = stamp(v.timeOf(r.At))
	}
	return out
}

// reading returns r as it is told, without its time; the zero r is none yet.
func (of *point) reading(r device.Reading) agents.Reading {
	out := agents.Reading{Point: of.Address, Unit: of.Unit}
	if r.Point == "" {
		out.Quality, out.Why = device.Stale, "no reading yet"
		if of.Kind == device.KindEvent {
			out.Quality, out.Why = device.Good, "nothing has happened yet"
		}
		return out
	}
	out.Value, out.Quality, out.Why, out.Effect = r.Value, r.Quality, r.Why, r.Effect
	out.Age = seconds(time.Since(r.At))
	return out
}

// detail returns the limits and the state of an output; nil for any other point.
func (v *view) detail(p agents.Principal, address string) *agents.OutputDetail {
	of := v.point(address)
	s, ok := v.Outputs.StatusOf(address)
	policy, err := v.Outputs.Policy(address)
	if !of.Kind.Output() || !ok || err != nil {
		return nil
	}
	d := v.doing(p, s)
	d.Safe, d.Max, d.Limits, d.Confirm = policy.Safe, seconds(policy.Longest()), v.limits(policy), of.confirms()
	return &d
}

// doing returns the current state of an output without its limits, with a fault in Why.
func (v *view) doing(p agents.Principal, s guard.Status) agents.OutputDetail {
	o := v.state(p, s)
	o.Why, o.Fault = cmp.Or(o.Why, o.Fault), ""
	d := agents.OutputDetail{OutputState: o, State: s.State, Others: v.others != nil && v.others(s)}
	if !s.Safe || s.Holder != "" {
		d.MaxOn, d.Duty = v.allowances(s)
	}
	if !s.Measured.IsZero() {
		d.Set, d.Measured = aged(s.Set, s.SetAge), aged(s.Measured, s.MeasuredAge)
	}
	return d
}

// Status returns how the site is.
func (n *Node) Status(
	_ context.Context, p agents.Principal, r agents.SiteRequest,
) (out agents.Answers[agents.Status], err error) {
	c := Call{who: p, Ask: agents.Ask{Op: agents.OpStatus, Effect: agents.Reads}, Terms: r.Terms, Args: none}
	v := n.enter(&c)
	if err := n.begin(&c, oneSite(r)); err != nil {
		return out, err
	}
	defer c.End()
	out.Sites = []agents.Status{n.status(v, p)}
	return out, nil
}

func (n *Node) status(v *view, p agents.Principal) agents.Status {
	out := agents.Status{
		Site: v.Name, Version: v.Version, Simulated: v.Simulated,
		Uptime: seconds(time.Since(v.Started).Truncate(time.Second)), Stopped: v.Outputs.Stopped(),
		Devices: []agents.DeviceStatus{}, Moved: []agents.OutputStatus{},
	}
	for _, d := range v.Devices {
		if v.seesOf(d) {
			its := agents.DeviceStatus{Device: d.Name, Model: d.Description.Model, Faults: n.faults(v, d)}
			out.Devices = append(out.Devices, its)
		}
	}
	for _, s := range v.Outputs.Status() {
		o := agents.OutputStatus{Output: s.Output, Value: s.Value, OutputState: v.state(p, s)}
		switch {
		case !v.sees(agents.OpStatus, s.Output):
		case !s.Safe || s.Holder != "":
			o.Rest, o.Needs, o.Why = 0, "", "" // why it cannot be moved
			out.Moved = append(out.Moved, o)
		case s.Rest > 0 || s.Lacks != "" || s.Latched || s.Effect == guard.Failed:
			out.Blocked = append(out.Blocked, o)
		}
	}
	return out
}

// seesOf reports whether any point of a device is seen, or the device has none and all is.
func (v *view) seesOf(d Device) bool {
	return v.bare || slices.ContainsFunc(d.Description.Points, func(p device.Point) bool {
		return v.sees(agents.OpStatus, device.Address(d.Name, p.Name))
	})
}

// faults lists the problems of a device: that it is missing, or which of its points cannot be read.
func (n *Node) faults(v *view, d Device) []string {
	if d.Missing != "" {
		return []string{d.Missing}
	}
	var all []string
	for _, p := range d.Description.Points {
		address := device.Address(d.Name, p.Name)
		if r, ok := n.hub.Latest(address); ok && r.Quality != device.Good && v.sees(agents.OpStatus, address) {
			all = append(all, p.Name+": "+string(r.Quality)+" "+r.Why)
		}
	}
	return all
}

// stamp formats a time as it is sent: RFC 3339 in UTC, to the millisecond.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// seconds is a length as it is sent: to the millisecond, and 0 for without limit.
func seconds(d time.Duration) float64 {
	if d == guard.Unlimited {
		return 0
	}
	return math.Round(d.Seconds()*1000) / 1000
}
