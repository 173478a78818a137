// Package trials tries the rules of a site over its own past.
package trials

import (
	"context"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/node/hosted"
)

// Runner makes trials, one at a time.
type Runner struct {
	Node   *node.Node
	Hub    *node.Hub
	Hosted *hosted.Manager
	Past   trial.Source
	Now    func() (time.Time, bool) // the site's clock, by which Past is
	Policy func(output string) (guard.Policy, error)
	// Draft returns a draft by its name; ok is false where there is none.
	Draft func(name string) (c hosted.Configured, ok bool, err error)

	turn device.Mutex
}

// New returns a runner for a site.
func New(n *node.Node, hub *node.Hub, h *hosted.Manager, past trial.Source, now func() (time.Time, bool), policy func(output string) (guard.Policy, error), draft func(string) (hosted.Configured, bool, error)) *Runner {
	return &Runner{Node: n, Hub: hub, Hosted: h, Past: past, Now: now, Policy: policy, Draft: draft, turn: device.NewMutex()}
}

// Try tries rules between two times, for an owner; the end may be left out for now. It waits for
// the trial before it. It takes one of the two slots for reads of the past; the other one stays
// free for reads.
func (r *Runner) Try(ctx context.Context, who agents.Principal, q trial.Request) (trial.Result, error) {
	if err := r.turn.LockContext(ctx); err != nil {
		return trial.Result{}, err
	}
	defer r.turn.Unlock()
	if q.To.IsZero() {
		q.To, _ = r.Now()
	}
	all := r.Hosted.Configured()
	for _, name := range q.Rules {
		draft, ok, err := r.Draft(name)
		if err != nil {
			return trial.Result{}, err
		}
		if ok {
			all = append(all, draft)
		}
	}
	list, err := r.Node.Points(ctx, who, agents.SiteRequest{})
	if err != nil {
		return trial.Result{}, err
	}
	o := trial.Options{GoodFor: r.Hub.GoodFor, Source: r.Past, Points: list.Points, Location: rule.Local(q.To).Location()}
	for _, p := range list.Points {
		if !p.Kind.Output() {
			continue
		}
		policy, err := r.Policy(p.Point)
		if err != nil {
			return trial.Result{}, err
		}
		o.Policies = append(o.Policies, policy)
	}
	leave, err := r.Node.ReadPast(ctx, who)
	if err != nil {
		return trial.Result{}, err
	}
	defer leave()
	return Run(ctx, o, all, q)
}

// Run tries those rules of all that q names, between its times. o has the points, the limits and the past.
func Run(ctx context.Context, o trial.Options, all []hosted.Configured, q trial.Request) (trial.Result, error) {
	o.From, o.To = q.From, q.To
	var known []string
	for _, a := range all {
		of, ok := a.Agent.(*rule.Rule)
		if !ok {
			continue
		}
		if known = append(known, a.Name); len(q.Rules) == 0 || slices.Contains(q.Rules, a.Name) {
			o.Rules = append(o.Rules, trial.Rule{Name: a.Name, Self: a.Principal, Rank: a.Rank, Rule: of})
		}
	}
	for _, name := range q.Rules {
		if !slices.Contains(known, name) {
			return trial.Result{}, device.Faultf(
				device.Invalid, "there is no rule %.60q here%s", name, device.Suggest(name, known, "rule"),
			)
		}
	}
	var unproven []string
	for i := range o.Policies {
		if p := &o.Policies[i]; p.Expects != (guard.Expectation{}) {
			unproven = append(unproven, p.Output)
			p.Expects = guard.Expectation{}
		}
	}
	done, err := trial.Run(ctx, o)
	for _, output := range done.Outputs {
		if slices.Contains(unproven, output.Output) {
			done.Unproven = append(done.Unproven, output.Output)
		}
	}
	return done, err
}
