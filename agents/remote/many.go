package remote

import (
	"context"
	"slices"
	"sync"

	"agentsite/agents"
)

// errand is one site's part of a call to many.
type errand struct {
	to   *peer
	args map[string]any
}

// everywhere are the sites that offer a tool, or may: nobody knows of one that never was
// there. A stop is for all that have outputs, also where this caller may not stop them: it
// is told of those.
func (h *House) everywhere(tool string) []errand {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []errand
	for _, p := range h.ordered() {
		_, offered := p.had[tool]
		if tool == emergencyStop && !offered {
			offered = slices.ContainsFunc(verbs, func(v verb) bool { return v.moves && len(p.had[v.name]) > 0 })
		}
		if offered || p.had == nil {
			all = append(all, errand{to: p})
		}
	}
	return all
}

// whole calls a tool that is about a whole site: of one that is named, or of all.
func (h *House) whole(ctx context.Context, r request) (agents.Result, error) {
	for name := range r.args {
		if name != siteArg {
			return agents.Result{}, faultf("invalid", "%s: there is no argument %.60q; %s is the only one", r.name, name, siteArg)
		}
	}
	to := h.everywhere(r.name)
	site, alone := r.args[siteArg]
	if alone {
		name, _ := site.(string)
		p, err := h.named(name)
		if err != nil {
			return agents.Result{}, err
		}
		to = []errand{{to: p}}
	}
	switch r.name {
	case listPoints:
		return together(ctx, r, to, alone, func(all []answer[points], missed []missed) any {
			out := points{Points: []point{}, Missed: missed}
			for _, a := range all {
				out.Points = append(out.Points, a.value.Points...)
			}
			return out
		})
	case siteStatus:
		return together(ctx, r, to, alone, func(all []answer[status], missed []missed) any {
			out := statuses{Sites: []status{}, Missed: missed}
			for _, a := range all {
				a.value.Site = a.from.name // whatever it calls itself
				out.Sites = append(out.Sites, a.value)
			}
			return out
		})
	}
	return together(ctx, r, to, alone, func(all []answer[stopped], missed []missed) any {
		out := stops{Sites: []stopped{}, Missed: missed}
		for _, a := range all {
			a.value.Site = a.from.name
			out.Sites = append(out.Sites, a.value)
		}
		return out
	})
}

// read asks the sites of the points that are named, or all, for their readings.
func (h *House) read(ctx context.Context, r request) (agents.Result, error) {
	list, ok := r.args[r.arg].([]any)
	switch {
	case !ok && r.args[r.arg] != nil:
		return agents.Result{}, faultf("invalid", "%s: write a list of points, as list_points names them", r.arg)
	case len(list) > maxList:
		return agents.Result{}, faultf("invalid", "%s: at most %d points in one call", r.arg, maxList)
	case len(list) == 0:
		return together(ctx, r, h.everywhere(r.name), false, func(all []answer[readings], missed []missed) any {
			return joined(all, missed)
		})
	}
	var to []errand
	order := make(map[address]int)
	for i, a := range list {
		here, _ := a.(string)
		p, there, err := h.find(r.arg, here)
		if err != nil {
			return agents.Result{}, err
		}
		if _, twice := order[address(here)]; twice {
			continue
		}
		order[address(here)] = i
		at := slices.IndexFunc(to, func(e errand) bool { return e.to == p })
		if at < 0 {
			at, to = len(to), append(to, errand{p, map[string]any{r.arg: []any(nil)}})
		}
		to[at].args[r.arg] = append(to[at].args[r.arg].([]any), there)
	}
	return together(ctx, r, to, len(to) == 1, func(all []answer[readings], missed []missed) any {
		out := joined(all, missed)
		out.Readings = slices.DeleteFunc(out.Readings, func(r reading) bool { _, asked := order[r.Point]; return !asked })
		slices.SortStableFunc(out.Readings, func(a, b reading) int { return order[a.Point] - order[b.Point] })
		return out
	})
}

func joined(all []answer[readings], missed []missed) readings {
	out := readings{Readings: []reading{}, Missed: missed}
	for _, a := range all {
		out.Readings = append(out.Readings, a.value.Readings...)
	}
	return out
}

// answer is what one site answered.
type answer[T any] struct {
	from  *peer
	value T
}

// together asks sites all at once, and joins what they answer; who does not is told of
// beside it. Where the call is about one site alone, what goes wrong there is the call's.
func together[T any](ctx context.Context, r request, to []errand, alone bool, join func([]answer[T], []missed) any) (agents.Result, error) {
	within, soon := patienceOfMany, reachOfMany
	if alone {
		within, soon = patience, reach
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	results, faults := make([]agents.Result, len(to)), make([]error, len(to))
	var asked sync.WaitGroup
	for i, e := range to {
		its := r
		its.args = e.args
		asked.Go(func() { results[i], faults[i] = ask[T](ctx, e.to, its, soon) })
	}
	asked.Wait()
	var answers []answer[T]
	var missing []missed
	for i, e := range to {
		res, err := results[i], faults[i]
		switch value, ok := res.Value.(T); {
		case ok:
			answers = append(answers, answer[T]{e.to, value})
		case alone:
			return res, err
		case err == nil:
			missing = append(missing, missed{e.to.name, res.NeedInput.Elsewhere + "; name it in a call for itself"})
		default:
			missing = append(missing, missed{e.to.name, err.Error()})
		}
	}
	return agents.Result{Value: join(answers, missing)}, nil
}
