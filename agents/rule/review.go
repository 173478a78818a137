package rule

import (
	"fmt"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// calls returns the moves of the rule, what it shows and whom it asks. It asks to move for no longer than
// it may, and again and again, so that moves have no length.
func (c *compiled) calls() (all []agent.Call) {
	for _, t := range c.targets {
		ask := agents.Ask{Op: agents.OpMove, Points: []string{t.address}, Value: t.value, Effect: agents.Acts}
		all = append(all, agent.Call{Key: t.key, Ask: ask})
	}
	for _, n := range c.notes {
		ask := agents.Ask{Op: agents.OpShow, Points: []string{n.Display}}
		if n.Agent != "" {
			ask = agents.Ask{Op: agents.OpAsk, Points: []string{n.Agent}}
		}
		all = append(all, agent.Call{Key: n.key, Ask: ask})
	}
	return all
}

// doubts returns what the rule may do that its owner does not want: never to begin or to end, to switch again
// and again while a measurement is near a limit, or to hold an output for less than is written.
func (r *Rule) doubts(c *compiled, known Points) (all []*agent.Mistake) {
	if all = c.impossible(); all != nil {
		return all
	}
	if r.When != "" && r.Until == "" && r.For == 0 {
		var uses expr.Uses
		program, err := known.Compile(r.When, &uses)
		for i, address := range uses.Points {
			p, _ := known.find(address)
			if err != nil || p == nil || p.Kind != device.KindMeasurement {
				continue
			}
			if s := program.Sense(i); s.Value || len(s.Bounds) > 0 {
				all = append(all, &agent.Mistake{Key: "when",
					Err: fmt.Errorf("near the limit %s may switch the outputs on and off "+
						"again and again; add until: with another limit, or for: 1m", address)})
				break
			}
		}
	}
	for _, t := range c.targets {
		if t.longest > 0 && t.length > t.longest {
			return append(all, &agent.Mistake{Key: t.key,
				Err: fmt.Errorf("%s can be away from safe for %v at a time, so that for: %v has "+
					"breaks; write a shorter for:, or a longer max_on",
					t.address, device.FormatDuration(t.longest), device.FormatDuration(t.length))})
		}
	}
	return all
}

// impossible returns which conditions are never true, alone or beside the other.
func (c *compiled) impossible() (all []*agent.Mistake) {
	doubt := func(which int, format string, args ...any) {
		all = append(all, &agent.Mistake{Key: programKeys[which], Err: fmt.Errorf(format, args...)})
	}
	for which, p := range c.programs {
		switch {
		case p == nil || !p.Never():
		case p.UsesClock():
			doubt(which, "%s is never true; over midnight write such as now between 22:00..6:00, and for one of two cases or", p)
		default:
			doubt(which, "%s is never true: no value is both; for one of two cases write or", p)
		}
	}
	when, until := c.programs[whenProgram], c.programs[untilProgram]
	switch {
	case all != nil || when == nil || until == nil:
	case when.Implies(until):
		doubt(untilProgram, "%s is true whenever when: is, so that no hold begins; write a limit that is reached later, or leave out until:", until)
	case until.Implies(when):
		doubt(untilProgram, "%s is true only while when: is, so that the hold does not end where when: is false; "+
			"write the other direction, such as when: t < 5 Cel with until: t > 7 Cel", until)
	}
	return all
}
