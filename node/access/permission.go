package access

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// Permission is one part of a block: some tools, on some points, within some limits. A block
// with any other field is refused. Zero fields limit nothing, except that no points means
// calls that name none.
type Permission struct {
	Tools   []string `cbor:"1,keyasint"`           // sorted
	Points  []string `cbor:"2,keyasint,omitempty"` // patterns, sorted; for askTool of agents
	Range   *Range   `cbor:"3,keyasint,omitempty"` // of the values to set
	Lease   Seconds  `cbor:"4,keyasint,omitempty"` // the longest
	Rate    *Rate    `cbor:"5,keyasint,omitempty"` // of all calls except returns to safe
	Confirm bool     `cbor:"6,keyasint,omitempty"` // an owner confirms each call
}

// Range is a closed interval.
type Range struct {
	_        struct{} `cbor:",toarray"`
	Min, Max float64
}

// Rate limits the calls in any stretch of time of a length.
type Rate struct {
	_     struct{} `cbor:",toarray"`
	Calls uint16
	Per   Seconds
}

// Seconds is a length of time.
type Seconds uint32

// Duration returns s as a time.Duration.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

const (
	maxCalls   = 250 // in a rate: the time of each is stored
	maxLength  = Seconds(366 * 24 * 3600)
	maxEntries = 32 // in each list of a block
)

const toolLetters = "abcdefghijklmnopqrstuvwxyz0123456789_"

func isTool(name string) bool {
	return name != "" && len(name) <= 40 && strings.Trim(name, toolLetters) == ""
}

// isPattern reports whether a text is "*" for all points of this site, "device" for all of one
// device, or "device/point". For the points of another site a hosted agent has "site",
// "site/device" or "site/device/point": no site that is configured has the name of a device.
func isPattern(text string) bool {
	names := strings.Split(text, "/")
	return text == "*" || len(names) <= 3 && !slices.ContainsFunc(names, func(n string) bool { return device.CheckName(n) != nil })
}

// isAgentPattern reports whether a text is "*" for all agents of this site, or the name of one. For
// those of another site a hosted agent has "site" or "site/agent": no agent has a site's name.
func isAgentPattern(text string) bool { return isPattern(text) && strings.Count(text, "/") < 2 }

// askTool asks an agent: its permissions name agents, and no points.
var askTool = agents.OpAsk.Tool()

// AtOtherSite reports whether a pattern of p can only match at another site.
func (p Permission) AtOtherSite(pattern string) bool {
	most := 1 // slashes
	if p.asks() {
		most = 0
	}
	return strings.Count(pattern, "/") > most
}

// asks reports whether p is about agents.
func (p Permission) asks() bool { return slices.Contains(p.Tools, askTool) }

// Answers reports whether p lets a phone answer calls that wait for an owner.
func (p Permission) Answers() bool { return slices.Contains(p.Tools, agents.AnswerTool) }

// matches reports whether a pattern covers the address of a point.
func matches(pattern, point string) bool {
	slashes := strings.Count(point, "/")
	return slashes > 0 && (pattern == "*" && slashes == 1 || pattern == point || within(pattern, point))
}

// within reports whether a pattern of fewer names covers another one, or an address.
func within(pattern, other string) bool {
	return len(other) > len(pattern) && other[len(pattern)] == '/' && strings.HasPrefix(other, pattern)
}

// check refuses a permission without a meaning, and all but one form of it.
func (p Permission) check() error {
	type list struct {
		one, many, example string
		names              []string
		valid              func(string) bool
	}
	places := list{"a point", "points", "climate/temperature, climate or *", p.Points, isPattern}
	if p.asks() {
		places = list{"an agent", "agents", "water_beds or *", p.Points, isAgentPattern}
	}
	for _, list := range []list{{"a tool", "tools", "read_points", p.Tools, isTool}, places} {
		if len(list.names) > maxEntries {
			return fmt.Errorf("one part has at most %d %s, not %d: split it", maxEntries, list.many, len(list.names))
		}
		for i, name := range list.names {
			if !list.valid(name) {
				return fmt.Errorf("%.40q is not %s; write it like %s", name, list.one, list.example)
			}
			if i > 0 && list.names[i-1] >= name {
				return fmt.Errorf("the %s are not sorted and unique", list.many)
			}
		}
	}
	switch r := p.Range; {
	case len(p.Tools) == 0:
		return fmt.Errorf("a part without a tool permits nothing")
	case p.asks() && (len(p.Tools) > 1 || len(p.Points) == 0 || p.Range != nil || p.Lease != 0):
		return fmt.Errorf("asking agents is a part by itself, with a rate or confirm and no other limit; write it like: ask water_beds 10/h")
	case r != nil && !(r.Min <= r.Max) || r != nil && (math.IsInf(r.Min, 0) || math.IsInf(r.Max, 0)):
		return fmt.Errorf("%v..%v is not a range; write it like 20..80", r.Min, r.Max)
	case p.Lease > maxLength:
		return fmt.Errorf("a lease is at most a year")
	case p.Rate != nil && (p.Rate.Calls == 0 || p.Rate.Calls > maxCalls || p.Rate.Per == 0 || p.Rate.Per > maxLength):
		return fmt.Errorf("a rate has 1 to %d calls in a time of at most a year, such as 10/h", maxCalls)
	}
	return nil
}

// covers reports whether p decides about a tool on a point, "" for a call that names none. A call
// without a point is covered if p covers all points or names none. If it only reads, it is always
// covered, because its result has only points that the caller may read.
func (p Permission) covers(tool, point string, effect agents.Effect) bool {
	if !slices.Contains(p.Tools, tool) {
		return false
	}
	if point == "" {
		return len(p.Points) == 0 || effect == agents.Reads || slices.Contains(p.Points, "*")
	}
	if p.asks() {
		here := device.CheckName(point) == nil
		return slices.ContainsFunc(p.Points, func(pattern string) bool { return pattern == "*" && here || pattern == point || within(pattern, point) })
	}
	return slices.ContainsFunc(p.Points, func(pattern string) bool { return matches(pattern, point) })
}

// allow checks an ask that p covers against the limits of p, and narrows l by them. It
// refuses an ask without the value that a limit is about.
func (p Permission) allow(ask agents.Ask, l *agents.Limits) error {
	l.Confirm = l.Confirm || p.Confirm
	if ask.Effect != agents.Acts {
		return nil
	}
	if r := p.Range; r != nil {
		if ask.Value.IsZero() || !(device.Range{Min: r.Min, Max: r.Max}).Contains(ask.Value.Number()) {
			return denied("you may set this to %v..%v and to nothing else", r.Min, r.Max)
		}
		if l.Range == nil {
			l.Range = &device.Range{Min: r.Min, Max: r.Max}
		}
		l.Range = &device.Range{Min: max(l.Range.Min, r.Min), Max: min(l.Range.Max, r.Max)}
	}
	if longest := p.Lease.Duration(); longest > 0 {
		if ask.For > longest {
			return denied("you may hold this for at most %v: use a shorter time, and renew it before its end", p.Lease)
		}
		if l.Lease == 0 || longest < l.Lease {
			l.Lease = longest
		}
	}
	return nil
}

// denied returns a refusal, which names the missing permission and never other things that exist.
func denied(format string, args ...any) *device.Fault {
	return device.Faultf(device.Denied, format, args...)
}
