package access

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A permission is written as
//
//	ACTION PATTERNS [MIN..MAX] [max TIME] [CALLS/TIME] [confirm]
//
// and several are separated by commas: read climate/*, set fan+vent 0..80 max 10m 10/h.
// PATTERNS of points are separated by plus signs; "device" and "device/*" are the same.
// "stop" has none, and those of "ask" are names of agents, of another site as site/agent.
// "use TOOL on PATTERNS", or "use TOOL", is any other tool.

// action is a word for some of the tools of a site.
type action struct {
	word  string
	tools []string // sorted
}

var actions = []action{ // read is the first
	{"read", []string{"list_points", "read_history", "read_points", "site_status"}},
	{wordSet, []string{"release_output", "set_level", "switch_output"}},
	{wordShow, []string{"show_text"}},
	{wordCapture, []string{"capture_image"}},
	{wordStop, []string{"emergency_stop"}},
	{wordAsk, []string{askTool}},
}

const (
	wordSet     = "set"
	wordShow    = "show"
	wordCapture = "capture"
	wordStop    = "stop"
	wordAsk     = "ask"
	wordUse     = "use"
)

// ParsePermissions parses permissions.
func ParsePermissions(text string) ([]Permission, error) {
	var all []Permission
	for part := range strings.SplitSeq(text, ",") {
		if len(all) == maxEntries {
			return nil, fmt.Errorf("at most %d parts fit into one permission: join several points in one part, as in: read climate+fan", maxEntries)
		}
		p, err := parsePart(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("in %q: %w", strings.TrimSpace(part), err)
		}
		for _, before := range all {
			if before.hides(p) {
				return nil, fmt.Errorf("%q has no effect after %q: put the narrower one first", strings.TrimSpace(part), before.String())
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// hides reports whether p decides about everything that a later permission could.
func (p Permission) hides(later Permission) bool {
	for _, tool := range later.Tools {
		if !slices.Contains(p.Tools, tool) {
			return false
		}
	}
	for _, pattern := range later.Points {
		if !slices.ContainsFunc(p.Points, func(mine string) bool {
			return mine == "*" && !p.AtOtherSite(pattern) || mine == pattern || within(mine, pattern)
		}) {
			return false
		}
	}
	return len(later.Points) > 0 || len(p.Points) == 0
}

func parsePart(words []string) (p Permission, err error) {
	if len(words) == 0 {
		return p, fmt.Errorf("a part is empty; write it like: read climate/*, or: set fan max 10m 10/h")
	}
	word, words := words[0], words[1:]
	hasPoints := word != wordStop
	if word == wordUse {
		if len(words) == 0 {
			return p, fmt.Errorf("use needs a tool: agentsite tools lists them")
		}
		p.Tools = split(words[0])
		words = words[1:]
		if hasPoints = len(words) > 0 && words[0] == "on"; hasPoints {
			words = words[1:]
		}
	} else if i := slices.IndexFunc(actions, func(a action) bool { return a.word == word }); i >= 0 {
		p.Tools = actions[i].tools
	} else {
		return p, fmt.Errorf("%q is not one of read, set, show, capture, stop, ask, use", word)
	}
	if hasPoints {
		if len(words) == 0 && word == wordAsk {
			return p, fmt.Errorf("ask needs names of agents (water_beds) or all (*)")
		}
		if len(words) == 0 {
			return p, fmt.Errorf("%s needs points (climate/temperature), devices (climate) or all (*)", word)
		}
		p.Points = split(words[0])
		words = words[1:]
	}
	for i := 0; i < len(words); i++ {
		if words[i] == "max" && i+1 < len(words) {
			i++
			p.Lease, err = parseSeconds(words[i])
		} else {
			err = p.parseLimit(words[i])
		}
		if err != nil {
			return p, err
		}
	}
	return p, p.check()
}

// split splits and sorts a list.
func split(list string) []string {
	names := strings.Split(list, "+")
	for i, n := range names {
		names[i] = strings.TrimSuffix(n, "/*")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p *Permission) parseLimit(word string) (err error) {
	if word == "confirm" {
		p.Confirm = true
		return nil
	}
	if low, high, ok := strings.Cut(word, ".."); ok {
		var r Range
		if r.Min, err = parseNumber(low); err == nil {
			r.Max, err = parseNumber(high)
		}
		p.Range = &r
		return err
	}
	if calls, per, ok := strings.Cut(word, "/"); ok {
		n, err := strconv.ParseUint(calls, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not a rate; write it like 10/h or 10/30m; join several points with + without spaces", word)
		}
		if strings.IndexAny(per, "0123456789") != 0 {
			per = "1" + per
		}
		length, err := parseSeconds(per)
		p.Rate = &Rate{Calls: uint16(n), Per: length}
		return err
	}
	return fmt.Errorf("%q is not a limit; use 0..80, max 10m, 10/h or confirm; join several points with + without spaces", word)
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, fmt.Errorf("%q is not a number; write a range like 20..80", text)
	}
	return n, nil
}

var (
	secondsPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]{1,9})([smhd])$`) })
	units          = []struct {
		letter string
		size   Seconds
	}{{"d", 24 * 3600}, {"h", 3600}, {"m", 60}, {"s", 1}} // the largest first
)

func parseSeconds(text string) (Seconds, error) {
	if m := secondsPattern().FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseUint(m[1], 10, 32)
		for _, u := range units {
			if u.letter == m[2] && n > 0 && n <= uint64(maxLength/u.size) {
				return Seconds(n) * u.size, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is not a duration; use 1s to 366d, such as 90s, 10m, 2h or 7d", text)
}

func (s Seconds) String() string {
	for _, u := range units {
		if s%u.size == 0 {
			return strconv.FormatUint(uint64(s/u.size), 10) + u.letter
		}
	}
	return ""
}

func (r Rate) String() string {
	per := r.Per.String()
	if len(per) == 2 { // 1h, say
		per = strings.TrimPrefix(per, "1")
	}
	return fmt.Sprintf("%d/%s", r.Calls, per)
}

// FormatPermissions reverses ParsePermissions.
func FormatPermissions(all []Permission) string {
	parts := make([]string, len(all))
	for i, p := range all {
		parts[i] = p.String()
	}
	return strings.Join(parts, ", ")
}

// String returns p as ParsePermissions reads it.
func (p Permission) String() string {
	word := wordUse + " " + strings.Join(p.Tools, "+")
	on := " on "
	for _, a := range actions {
		if slices.Equal(a.tools, p.Tools) && (a.word == wordStop) == (len(p.Points) == 0) {
			word, on = a.word, " "
		}
	}
	if len(p.Points) > 0 {
		word += on + strings.Join(p.Points, "+")
	}
	if r := p.Range; r != nil {
		word += " " + number(r.Min) + ".." + number(r.Max)
	}
	if p.Lease > 0 {
		word += " max " + p.Lease.String()
	}
	if p.Rate != nil {
		word += " " + p.Rate.String()
	}
	if p.Confirm {
		word += " confirm"
	}
	return word
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Unmatched lists the actions and patterns of permissions that match no point and no agent of a
// site. kinds maps the address of each point to its kind, and the name of each agent to KindAgent.
// For an invalid text it returns nothing.
func Unmatched(text string, kinds map[string]string) (unmatched []string) {
	all, err := ParsePermissions(text)
	if err != nil {
		return nil
	}
	for _, p := range all {
		word := wordUse
		for _, a := range actions {
			if slices.Equal(a.tools, p.Tools) {
				word = a.word
			}
		}
		for _, pattern := range p.Points {
			found := pattern == "*" || p.asks() && kinds[pattern] == KindAgent
			for point, kind := range kinds {
				found = found || matches(pattern, point) && appliesTo(word, kind)
			}
			if !found {
				unmatched = append(unmatched, word+" "+pattern)
			}
		}
	}
	return unmatched
}

// KindAgent stands for a hosted agent among the kinds of points.
const KindAgent = "agent"

// appliesTo reports whether a permission for an action can be about a point of a kind.
func appliesTo(word, kind string) bool {
	switch word {
	case wordSet:
		return kind == "switch" || kind == "level"
	case wordShow:
		return kind == "text"
	case wordCapture:
		return kind == "image"
	case wordAsk:
		return false // it names agents
	}
	return true
}

// DefaultLength returns how long a grant lasts by default: 90 days for reading only, seven
// for anything else.
func DefaultLength(all []Permission) time.Duration {
	const day = 24 * time.Hour
	for _, p := range all {
		for _, tool := range p.Tools {
			if !slices.Contains(actions[0].tools, tool) {
				return 7 * day
			}
		}
	}
	return 90 * day
}

// ParseUntil parses the end of a grant, in the time zone of now. It accepts a length (7d), a time
// (2026-12-24T18:00:00Z), a day, meaning its end (today, tomorrow, fri, 2026-12-24), or never,
// which is the zero Time.
func ParseUntil(text string, now time.Time) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if length, err := parseSeconds(text); err == nil {
		return now.Add(length.Duration()), nil
	}
	midnight := func(day time.Time, after int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day()+after, 0, 0, 0, 0, now.Location())
	}
	until, err := time.Parse(time.RFC3339, text)
	if day, dayErr := time.Parse(time.DateOnly, text); dayErr == nil {
		until, err = midnight(day, 1), nil
	}
	if after := slices.Index([]string{"today", "tomorrow"}, strings.ToLower(text)); after >= 0 {
		until, err = midnight(now, after+1), nil
	}
	for after := range 7 {
		if name := strings.ToLower(now.AddDate(0, 0, after).Weekday().String()); len(text) >= 3 && strings.HasPrefix(name, strings.ToLower(text)) {
			until, err = midnight(now, after+1), nil
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not an end: write a duration (7d), a day (tomorrow, fri, 2026-12-24), a time (2026-12-24T18:00:00Z) or never", text)
	}
	if !until.After(now) {
		return time.Time{}, fmt.Errorf("%s is past", text)
	}
	if until.Unix() > lastSecond || until.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%s is too far: write never", text)
	}
	return until, nil
}
