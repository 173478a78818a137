package llm

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"
)

// guarded is the site as the model has it. Of three things that an agent may have, the words of
// others, an effect and no person who looks, it never has all (the Rule of Two): once it has read
// what others wrote, an owner approves each effect, or none is made. What others wrote is a text:
// numbers, names and what the owner wrote are not.
type guarded struct {
	Site    agents.Site // of the task: what acts is a step of it
	run     *run
	foreign string // whose words were read; "" for none
	only    string // the agent whose program wrote all of them; "" for others
	planned bool   // the calls were fixed before any were read
	moves   int
	moved   map[string]bool // outputs that the task holds away from safe
	before  []task.Step     // that were made before a restart
}

// taint notes that the model reads the words of others: of the program of the agent from, or of
// anybody where that is "".
func (g *guarded) taint(whose, from string) {
	if g.foreign == "" {
		g.foreign, g.only = whose, from
	} else if g.only != from {
		g.only = ""
	}
}

// resume takes up what was done before a restart: what was read is not known any more.
func (g *guarded) resume(before []task.Step) {
	g.before = before
	for _, s := range before {
		switch {
		case s.Op != agents.OpMove:
			g.taint("others, before the site restarted", "")
		case s.May() && !s.Value.IsZero():
			g.moves++
		}
	}
}

// allow decides about an effect; to is the agent whose program hears of it, "" for others. What one
// program wrote may have the same one called again. Whether the asker may do this, the site decides.
func (g *guarded) allow(terms *agents.Terms, to string) error {
	refuse := g.run.agent.Tainted == taintedRefuse
	terms.Behalf.Refuse = refuse
	terms.Confirm = g.foreign != "" && !g.planned && (to == "" || to != g.only)
	if terms.Confirm && refuse {
		return device.Faultf(device.Denied, "refused: it has read the words of %s", g.foreign)
	}
	return nil
}

// Move implements agents.Site.
func (g *guarded) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	moves := !r.Value.IsZero()
	if moves {
		err = g.allowMove(&r)
	} else if !g.moved[r.Output] { // its own may return
		err = g.allow(&r.Terms, "")
	}
	if err != nil {
		return out, err
	}
	out, err = g.Site.Move(ctx, p, r)
	err = own(err, r.Output)
	if moves && err == nil {
		g.run.agent.held.Note(r.Output, agent.Seconds(out.Left))
	}
	if err == nil && g.moved == nil {
		g.moved = make(map[string]bool)
	}
	if err == nil {
		g.moved[r.Output] = moves
	}
	if moves && (err == nil || device.AsFault(err).Kind == device.UnknownOutcome) {
		g.moves++
	}
	return out, err
}

// allowMove decides about a move away from safe, as allow does.
func (g *guarded) allowMove(r *agents.MoveRequest) error {
	if most := g.run.agent.Limits.Moves; g.moves >= most {
		return device.Faultf(device.Denied, "refused: it makes at most %d moves for one task; tell the asker what is left to do", most)
	}
	for _, s := range g.before {
		if s.Op == agents.OpMove && s.May() && s.Output == r.Output && s.Value == r.Value {
			return device.Faultf(device.UnknownOutcome, "refused: this was asked for before the site restarted; it is not made again")
		}
	}
	return g.allow(&r.Terms, "")
}

// Show implements agents.Site.
func (g *guarded) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	if err := g.allow(&r.Terms, ""); err != nil {
		return err
	}
	return own(g.Site.Show(ctx, p, r), r.Display)
}

// Capture implements agents.Site.
func (g *guarded) Capture(ctx context.Context, p agents.Principal, r agents.CaptureRequest) (agents.Picture, error) {
	if g.run.agent.Model.Images { // there may be words in it
		g.taint("whoever stands before "+r.Camera, "")
	}
	r.Behalf.Refuse = g.run.agent.Tainted == taintedRefuse
	picture, err := g.Site.Capture(ctx, p, r)
	return picture, own(err, r.Camera)
}

// Stop implements agents.Site.
func (g *guarded) Stop(ctx context.Context, p agents.Principal, r agents.SiteRequest) (res agents.Answers[agents.Stopped], err error) {
	if err := g.allow(&r.Terms, ""); err != nil {
		return res, err
	}
	return g.Site.Stop(ctx, p, r)
}

// Points implements agents.Site. What other sites say about their points is left out.
func (g *guarded) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	list, err := g.Site.Points(ctx, p, r)
	list.Points, list.Missed = append([]agents.Point(nil), list.Points...), missed(list.Missed)
	for i := range list.Points {
		if at := &list.Points[i]; elsewhere(at.Point) {
			at.Name, at.Description, at.Device, at.Limits = "", "", "", ""
		}
	}
	return list, err
}

// Read implements agents.Site.
func (g *guarded) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	res, err := g.Site.Read(ctx, p, r)
	res.Readings, res.Missed = append([]agents.Reading(nil), res.Readings...), missed(res.Missed)
	for i := range res.Readings {
		at := &res.Readings[i]
		g.value(at.Point, at.Value)
		if elsewhere(at.Point) {
			at.Why = ""
		}
	}
	return res, own(err, r.Points...)
}

// History implements agents.Site.
func (g *guarded) History(ctx context.Context, p agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	res, err := g.Site.History(ctx, p, r)
	res.Changes = g.events(r.Point, res.Changes)
	return res, own(err, r.Point)
}

// Why implements agents.Site.
func (g *guarded) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	res, err := g.Site.Why(ctx, p, r)
	res.Changes = g.events(r.Point, res.Changes)
	g.value(r.Point, res.Value)
	res.Name, res.Via = "", nil // as callers and other sites call themselves
	if elsewhere(r.Point) {
		res.Title, res.Reading.Why, res.Refused, res.Needed, res.Used = "", "", "", nil, nil
		res.Output = nil
	}
	return res, own(err, r.Point)
}

// events returns the changes of a point as the model reads them.
func (g *guarded) events(point string, all []agents.Event) []agents.Event {
	all = append([]agents.Event(nil), all...)
	for i := range all {
		e := &all[i]
		g.value(point, e.Value)
		e.Via, e.Says = nil, "" // which callers chose, too
		if elsewhere(point) {
			*e = agents.Event{Time: e.Time, Value: e.Value}
		}
	}
	return all
}

// The letters of tools' names, and with the others those of states, such as half-open.
const letters, others = "abcdefghijklmnopqrstuvwxyz0123456789_", "-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// isWord reports whether a text has at most so many letters, of those alone.
func isWord(text, letters string, most int) bool {
	return len(text) <= most && strings.Trim(text, letters) == ""
}

// own returns an error without the words of another site.
func own(err error, addresses ...string) error {
	if err == nil || !slices.ContainsFunc(addresses, elsewhere) {
		return err
	}
	return device.Faultf(device.AsFault(err).Kind, "the other site, or the way to it, refuses this")
}

// value notes that the model reads a value: a text, such as that of a display, was written by
// whoever wrote it there.
func (g *guarded) value(point string, v device.Value) {
	if v.Type() == device.TypeText && !isWord(v.Text(), letters+others, 24) {
		g.taint("whoever writes "+point, "")
	}
}

// missed returns the sites that did not answer, without their words.
func missed(all []agents.Missed) []agents.Missed {
	all = append([]agents.Missed(nil), all...)
	for i := range all {
		all[i].Why = "it does not answer"
	}
	return all
}

// elsewhere reports whether a point is one of another site.
func elsewhere(address string) bool { return strings.Count(address, "/") > 1 }

// Offer implements agents.Site.
func (g *guarded) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	return g.Site.Offer(ctx, p)
}

// Status implements agents.Site.
func (g *guarded) Status(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Status], error) {
	return g.Site.Status(ctx, p, r)
}

// Watch implements agents.Site.
func (g *guarded) Watch(ctx context.Context, p agents.Principal, _ agents.WatchRequest, _ func(agents.Update) error) error {
	return g.Notify(ctx, p, agents.Change{}, nil, nil)
}

// Notify implements tools.Site.
func (g *guarded) Notify(context.Context, agents.Principal, agents.Change, []string, func(agents.Change) error) error {
	return device.Faultf(device.Unavailable, "a model watches nothing")
}
