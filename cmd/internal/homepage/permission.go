package homepage

import (
	"context"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/transport/rpc"
)

const permissionMethod = "permission/read"

// words are a permission and its end as a person writes them, as of agentsite grant.
type words struct {
	May   string `json:"may"`
	Until string `json:"until"` // "" for the usual end of such a permission
}

// permission is the meaning of words.
type permission struct {
	words        // in the usual form; the end is a time or never
	Parts []part `json:"parts"`

	end time.Time
}

// part is a part of a permission.
type part struct {
	Word    string      `json:"word"` // read, set, show, capture, stop, ask or use
	Tools   []string    `json:"tools"`
	Points  []string    `json:"points,omitzero"`
	Range   *[2]float64 `json:"range,omitzero"`
	Longest float64     `json:"max_seconds,omitzero"`
	Calls   uint16      `json:"calls,omitzero"`
	Per     float64     `json:"per_seconds,omitzero"`
	Confirm bool        `json:"confirm,omitzero"`
}

// readPermission reads words of a permission. Its errors are faults.
func readPermission(w words) (p permission, err error) {
	all, err := access.ParsePermissions(w.May)
	if err != nil {
		return p, device.Faultf(device.Invalid, "may: %w", err)
	}
	now := time.Now()
	p.end = now.Add(access.DefaultLength(all))
	if w.Until != "" {
		if p.end, err = access.ParseUntil(w.Until, now); err != nil {
			return p, device.Faultf(device.Invalid, "until: %w", err)
		}
	}
	p.May, p.Until = access.FormatPermissions(all), "never"
	if !p.end.IsZero() {
		p.end = time.Unix(access.EndSecond(p.end), 0).UTC()
		p.Until = p.end.Format(time.RFC3339)
	}
	for _, a := range all {
		word, _, _ := strings.Cut(a.String(), " ")
		one := part{Word: word, Tools: a.Tools, Points: a.Points, Longest: a.Lease.Duration().Seconds(), Confirm: a.Confirm}
		if a.Range != nil {
			one.Range = &[2]float64{a.Range.Min, a.Range.Max}
		}
		if a.Rate != nil {
			one.Calls, one.Per = a.Rate.Calls, a.Rate.Per.Duration().Seconds()
		}
		p.Parts = append(p.Parts, one)
	}
	return p, nil
}

// readWords tells what words of a permission mean.
func (h *Home) readWords(_ context.Context, _ *rpc.Call, w words) (any, error) {
	return readPermission(w)
}
