package hosted

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/config"
)

// Review returns an error for each call of an agent's definition that its permission or the outputs refuse. A
// site still runs with such agents. Doubts list what may be a mistake, also the files with secrets that cannot be read
// by secret, if that is not nil. One that another user may read is none.
func Review(cfg *config.Site, kinds Kinds, secret func(file string) (string, error)) (doubts []error, err error) {
	all, err := decode(cfg, kinds)
	if err != nil {
		return nil, err
	}
	var workers []string // agents that can be asked
	for _, e := range all {
		if _, ok := e.agent.(agent.Worker); ok {
			workers = append(workers, e.Name)
		}
	}
	var errs []error
	points, open := cfg.Described()
	known := make(map[string]string)
	for _, p := range points {
		known[p.Point] = string(p.Kind)
	}
	for _, e := range all {
		open = append(open, e.Name) // as another site, or a program
	}
	for _, e := range all {
		doubts = append(doubts, e.reviewPlaces(known, open)...)
		for _, c := range e.Calls {
			errs = append(errs, e.review(c))
			if name := c.Ask.Points[0]; c.Ask.Op == agents.OpAsk && !strings.Contains(name, "/") &&
				!slices.Contains(workers, name) {
				hint := device.Suggest(name, workers, "agent")
				if name == config.Notify {
					hint = "; write the section notify:, with whom it tells"
				}
				doubts = append(doubts, e.Errorf(c.Key, "%s: no agent %q in this file can be asked%s", c.Key, name, hint))
			}
		}
		for _, s := range e.Secrets {
			if secret == nil || s.File == "" {
				continue
			}
			if _, err := secret(s.File); err != nil && !errors.Is(err, fs.ErrPermission) {
				doubts = append(doubts, e.Errorf(s.Key, "%s: %w", s.Key, err))
			}
		}
		if e.May == "" && e.Powerless != "" {
			doubts = append(doubts, e.Errorf("kind", "it has no permission: %s", e.Powerless))
		}
		for _, d := range e.Doubts {
			doubts = append(doubts, e.Errorf(d.Key, "%w", d))
		}
	}
	return doubts, errors.Join(errs...)
}

// reviewPlaces returns a doubt for each part of a permission that no known point matches, and for each output of its
// calls that is none. The points of the devices and agents in open are not known.
func (e *entry) reviewPlaces(known map[string]string, open []string) (doubts []error) {
	if _, ok := e.agent.(agent.Elsewhere); ok {
		return nil // its places are those of another site
	}
	look := func(key, words string) {
		for _, part := range access.Unmatched(words, known) {
			word, place, _ := strings.Cut(part, " ")
			if first, _, _ := strings.Cut(place, "/"); word == "ask" || slices.Contains(open, first) {
				continue
			}
			doubts = append(doubts, e.Errorf(key, "%s: no point of this site matches %q%s", key, part,
				device.Suggest(place, slices.Sorted(maps.Keys(known)), "")))
		}
	}
	look("may", e.May)
	for _, c := range e.Calls {
		if c.Ask.Op == agents.OpMove {
			look(c.Key, "set "+c.Ask.Points[0])
		}
	}
	return doubts
}

// review returns why a call would be refused whenever it is made.
func (e *entry) review(c agent.Call) error {
	point, word := c.Ask.Points[0], "set"
	switch c.Ask.Op {
	case agents.OpShow:
		word = "show"
	case agents.OpAsk:
		word = "ask"
	}
	covered := c.Ask
	covered.Effect = agents.Returns // no limit counts
	if _, err := access.Permit(e.may, covered); err != nil {
		if e.May == "" {
			return e.Errorf(c.Key, "%s: it has no permission for %s; write may: %s %[2]s beside kind:", c.Key, point, word)
		}
		return e.Errorf(c.Key, "%s: its permission does not cover %s; write may: '%s, %s %[2]s'", c.Key, point, e.May, word)
	}
	if _, err := access.Permit(e.may, c.Ask); err != nil {
		return e.Errorf(c.Key, "%s: its permission, may: %s, does not cover this: %s", c.Key, e.May, device.AsFault(err).Msg)
	}
	if c.Longest > 0 && c.Ask.For > c.Longest {
		return e.Errorf(c.Key, "%s: %s can be held for at most %v at a time; write for: %[3]v, or a longer max_on for it",
			c.Key, point, device.FormatDuration(c.Longest))
	}
	return nil
}
