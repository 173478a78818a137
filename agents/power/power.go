// Package power is the hosted agent that has the machine powered off in order while its battery still
// lasts: when a condition over the site's own points, such as those of a UPS, has been true for a time.
package power

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule"
	"agentsite/agents/rule/expr"
	"agentsite/device"
)

// KindName is the name of the kind of agent, and of its section.
const KindName = "power"

const (
	minFor, maxFor = 10 * time.Second, time.Hour

	// notBefore is the time for which the machine stays on after the start of the site, whatever the battery says: an
	// owner has the time to change a wrong condition.
	notBefore = 5 * time.Minute
	// minReadings is the number of readings of each measurement of the condition, while it is true, before it counts.
	minReadings = 3
	// look is the time between two looks while the condition is true. Otherwise only changes are looked at.
	look = time.Second
	// offTimeout is the time that the machine has to power off before it is asked again.
	offTimeout = 2 * time.Minute
	askTimeout = time.Minute // for root's service, on a board that is busy with its end
	// tellPause is the least time between two tellings that it will be powered off, while a gauge jumps. That it is
	// powered off is always told.
	tellPause = 10 * time.Minute
)

// World holds the parts of the site and of the machine that the agent uses. The zero World is for agents that are
// only checked.
type World struct {
	Rules rule.World // for the points that a condition may name
	Start time.Time  // of the site
	// Off asks for the machine to be powered off. It returns once that is accepted, or why it is not.
	Off func(ctx context.Context) error
	// Tell tells that the machine will be powered off in the time left, or not any more.
	Tell func(will bool, because string, left time.Duration)
	// Note writes an event to the journal.
	Note func(says string)
}

// Kind returns the entry of the list of kinds.
func Kind(w World) agent.Kind {
	return agent.Kind{
		Name: KindName,
		Doc:  "powers the machine off in order, while a condition is true for a time: when its battery is almost empty",
		New:  func() agent.Agent { return &Agent{For: 30 * time.Second, world: w} },
	}
}

// Agent powers the machine off.
type Agent struct {
	OffWhen string        `json:"off_when" jsonschema:"the condition under which the machine is powered off, such as ups/charge < 10 % and mains/input is off"`
	For     time.Duration `json:"for,omitempty" jsonschema:"how long it has to be true all the time, 10s to 1h; 30s when not written"`

	agent.Status

	world World
}

// compile checks the condition against the points that are known.
func (a *Agent) compile(known rule.Points) (*expr.Program, error) {
	p, err := known.Compile(a.OffWhen, new(expr.Uses))
	switch {
	case err != nil:
		return nil, err
	case len(p.Points()) == 0:
		return nil, errors.New("names no point: write such as ups/charge < 10 %")
	case p.Never():
		return nil, errors.New("is never true: the machine would stay on until its battery is empty")
	case len(p.Windows()) > 0 || p.UsesClock() || p.UsesSun():
		return nil, errors.New("takes points and their ages only: leave out times of day and windows such as mean")
	}
	for _, address := range p.Points() {
		if strings.Count(address, "/") > 1 {
			return nil, fmt.Errorf("%.60q is of another site, which says nothing about this machine's battery", address)
		}
		if known.Moves(address) {
			return nil, fmt.Errorf("%.60q is an output: who may move it would power the machine off, or keep it on; name "+
				"what is measured", address)
		}
	}
	return p, nil
}

// Define implements agent.Defined.
func (a *Agent) Define() (agent.Definition, error) {
	if a.For < minFor || a.For > maxFor {
		return agent.Definition{}, &agent.Mistake{Key: "for", Err: errors.New("takes 10s to 1h")}
	}
	p, err := a.compile(a.world.Rules.Known(nil))
	if err != nil {
		return agent.Definition{}, &agent.Mistake{Key: "off_when", Err: err}
	}
	d := agent.Definition{Reads: p.Points()}
	if len(d.Reads) == 1 {
		d.Doubts = append(d.Doubts, &agent.Mistake{Key: "off_when", Err: fmt.Errorf(
			"%s alone decides: a gauge that is broken, and says so for %s, powers the machine off; "+
				"add what tells whether mains is there, such as and mains/input is off", d.Reads[0], device.FormatDuration(a.For))})
	}
	return d, nil
}

// Run watches the condition until ctx ends. Nothing but the condition has it ask for the machine's end.
func (a *Agent) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	compile := func() (*expr.Program, error) {
		list, err := site.Points(ctx, self, agents.SiteRequest{})
		if err != nil {
			return nil, err
		}
		return a.compile(a.world.Rules.Known(append([]agents.Point{}, list.Points...)))
	}
	program, err := compile()
	if err != nil {
		return err
	}
	points := program.Points()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, offered, ended := make(chan struct{}, 1), make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- site.Watch(ctx, self, agents.WatchRequest{Points: points}, func(u agents.Update) error {
			of := changed
			if u.Offer {
				of = offered
			}
			select {
			case of <- struct{}{}:
			default:
			}
			return nil
		})
	}()
	w := &watch{Agent: a, program: program, ask: func(ctx context.Context) (agents.Readings, error) {
		return site.Read(ctx, self, agents.ReadRequest{Points: points})
	}}
	defer func() {
		if w.asked.IsZero() { // else that is why the site ends
			w.clear("the site or this agent ends")
		}
	}()
	tick := time.NewTimer(look)
	defer tick.Stop()
	for {
		if w.step(ctx) {
			tick.Reset(look)
		} else {
			tick.Stop()
		}
		select {
		case <-ctx.Done():
			<-ended
			return nil
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-offered: // a point may have another unit, or be gone
			if w.program, err = compile(); err != nil {
				cancel()
				<-ended
				return err
			}
		case <-changed:
		case <-tick.C:
		}
	}
}
