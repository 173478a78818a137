package things

import (
	"context"
	"slices"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
)

func (a *Agent) sees(ask agents.Ask) bool { return a.part == nil || a.part(ask) }

func (a *Agent) seen(tool, address string) bool {
	return a.sees(agents.Ask{Tool: tool, Points: []string{address}, Effect: agents.Reads})
}

// reads reports whether a point may be told of wherever it comes up.
func (a *Agent) reads(address string) bool { return a.seen("read_points", address) }

// unseen stands for what is not told of.
const unseen = "something that you may not see"

// holder is who holds an output, as p may know it: who sees only a part knows nobody
// but itself.
func (a *Agent) holder(p agents.Principal, s guard.Status) string {
	if a.part == nil || s.Holder == "" || s.Holder == p.ID {
		return s.Holder
	}
	return "somebody else"
}

// limits are an output's without those on points that are not seen.
func (a *Agent) limits(p guard.Policy) string {
	if p.Requires.Point != "" && !a.reads(p.Requires.Point) {
		p.Requires = guard.Requirement{}
	}
	for _, q := range a.points {
		other, _ := a.site.Outputs.Policy(q.Address) // the zero Policy of what is no output
		if p.Interlock.Group != "" && other.Interlock.Group == p.Interlock.Group && !a.reads(q.Address) {
			p.Interlock = guard.Interlock{}
		}
	}
	return p.Limits()
}

// lacks is what an output requires and does not have.
func (a *Agent) lacks(s guard.Status) string {
	if p, err := a.site.Outputs.Policy(s.Output); s.Lacks != "" && (err != nil || !a.reads(p.Requires.Point)) {
		return unseen
	}
	return s.Lacks
}

// hush has a plan's faults tell p of nothing that p does not see.
func (a *Agent) hush(p agents.Principal, plan *agents.Plan) {
	if try := plan.Try; try != nil {
		plan.Try = func(ctx context.Context, l agents.Limits) error { return a.told(p, try(ctx, l)) }
	}
	if call := plan.Make; call != nil {
		plan.Make = func(ctx context.Context, l agents.Limits) (agents.Result, error) {
			res, err := call(ctx, l)
			return res, a.told(p, err)
		}
	}
}

// told is an error as p may hear it.
func (a *Agent) told(p agents.Principal, err error) error {
	if err == nil {
		return nil
	}
	f := device.AsFault(err)
	if slices.ContainsFunc(f.Names, func(name string) bool { return name != p.ID && !a.reads(name) }) {
		return &device.Fault{Kind: f.Kind, Msg: f.Short}
	}
	return err
}
