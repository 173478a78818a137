package things

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

type statusOut struct {
	Site      string      `json:"site"`
	Version   string      `json:"version"`
	Uptime    float64     `json:"uptime_seconds"`
	Simulated bool        `json:"simulated,omitzero"`
	Stopped   bool        `json:"emergency_stop"`
	Devices   []deviceOut `json:"devices"`
	Moved     []heldOut   `json:"outputs_away_from_safe"`
	Barred    []barredOut `json:"outputs_not_ready,omitzero"`
}

type deviceOut struct {
	Device string   `json:"device"`
	Model  string   `json:"model"`
	Faults []string `json:"faults,omitzero"`
}

type heldOut struct {
	Output string  `json:"output"`
	Value  value   `json:"value"`
	Goal   value   `json:"going_to,omitzero"`
	Holder string  `json:"held_by,omitzero"`
	Left   float64 `json:"seconds_left,omitzero"`
	Fault  string  `json:"fault,omitzero"`
}

// barredOut is an output at safe that its own limits keep there.
type barredOut struct {
	Output string  `json:"output"`
	Rest   float64 `json:"rest_seconds,omitzero"`
	Needs  string  `json:"needs,omitzero"`
	Why    string  `json:"returned_because,omitzero"`
}

func (a *Agent) siteStatus() (verb, error) {
	if !a.sees(agents.Ask{Tool: "site_status", Effect: agents.Reads}) {
		return verb{}, nil
	}
	return define(agents.Tool{
		Name:        "site_status",
		Description: "What is wrong with devices; outputs away from safe, for how long, or that cannot move yet; the emergency stop.",
		Hints:       agents.Hints{ReadOnly: true, Idempotent: true},
	}, limits{}, func(none) agents.Ask { return about() }, nil,
		func(_ context.Context, p agents.Principal, _ none, _ agents.Limits) (statusOut, error) {
			return a.status(p), nil
		})
}

func (a *Agent) status(p agents.Principal) statusOut {
	out := statusOut{
		Site: a.site.Name, Version: a.site.Version, Simulated: a.site.Simulated,
		Uptime: seconds(time.Since(a.site.Started).Truncate(time.Second)), Stopped: a.site.Outputs.Stopped(),
		Devices: []deviceOut{}, Moved: []heldOut{},
	}
	for _, t := range a.site.Things {
		if !a.seesOf(t) {
			continue
		}
		out.Devices = append(out.Devices, deviceOut{t.Name, t.Description.Model, a.faults(t)})
	}
	for _, s := range a.site.Outputs.Status() {
		switch {
		case !a.seen("site_status", s.Output):
		case !s.Safe || s.Holder != "":
			out.Moved = append(out.Moved, heldOut{s.Output, s.Value.Any(), goal(s), a.holder(p, s), seconds(s.Left), s.Fault})
		case s.Rest > 0 || s.Lacks != "":
			out.Barred = append(out.Barred, barredOut{s.Output, seconds(s.Rest), a.lacks(s), s.Why})
		}
	}
	return out
}

// seesOf reports whether any point of a thing is seen, or the thing has none and all is.
func (a *Agent) seesOf(t Thing) bool {
	return a.sees(agents.Ask{Tool: "site_status"}) || slices.ContainsFunc(t.Description.Points, func(p device.Point) bool {
		return a.seen("site_status", device.Address(t.Name, p.Name))
	})
}

// faults says what is wrong with a thing: that it is missing, or which of its points
// cannot be read.
func (a *Agent) faults(t Thing) []string {
	if t.Missing != "" {
		return []string{t.Missing}
	}
	var all []string
	for _, p := range t.Description.Points {
		address := device.Address(t.Name, p.Name)
		if r, ok := a.site.Readings.Latest(address); ok && r.Quality != device.Good && a.seen("site_status", address) {
			all = append(all, p.Name+": "+string(r.Quality)+" "+r.Why)
		}
	}
	return all
}
