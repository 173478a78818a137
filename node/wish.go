package node

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const (
	// wishTime bounds a wish after its last call, and an owner's no to it.
	wishTime = time.Hour
	// maxWished bounds the arguments that are kept of a wish.
	maxWished = 512
)

// Wish is a call for which the permission of a program that signed in is too narrow. The owner may widen that.
type Wish struct {
	Handle string
	Who    string
	Token  string // its name
	May    string // the permission of the token with what the call needs added
	Tool   string
	Args   []byte        // of the last such call, as JSON; nil where they are long
	Times  int           // that it was refused
	Ago    time.Duration // since the last
	Left   time.Duration
}

// wish is the part of a request that makes it a Wish. Calls of one tool about the same points are one.
type wish struct {
	who   agents.Principal
	ask   agents.Ask // of the last
	times int
	last  time.Time
}

func (w wish) same(other wish) bool {
	return w.who.ID == other.who.ID && w.ask.Name() == other.ask.Name() && slices.Equal(w.ask.Points, other.ask.Points)
}

// Lacks returns the refusal of a call of one of the site's tools that p is not offered, of which the owner is
// told as of others; nil for a call that the permissions of p cover.
func (n *Node) Lacks(p agents.Principal, tool string, args tools.Args) error {
	if err := known(p); err != nil {
		return err
	}
	ask, given := tools.AskOf(tool, args)
	if _, err := n.may(p, ask); err != nil {
		return n.refuse(Asked{Who: p.ID, Tool: tool}, n.wished(p, ask, given, err))
	}
	return nil
}

// wished notes a refused call for the owner if it is one of a program that signed in, and the permission of that
// can be widened. It returns the refusal, which says so.
func (n *Node) wished(p agents.Principal, ask agents.Ask, args any, refusal error) error {
	if n.access == nil || p.Kind != principal.Token || device.AsFault(refusal).Kind != device.Denied {
		return refusal
	}
	moves := ask.Name() == tools.SwitchOutput || ask.Name() == tools.SetLevel
	if moves && ask.For == 0 && len(ask.Points) > 0 && !n.access.CanSee(p, ask) { // a part that covers it has a length
		ask.For = n.site.Load().whole.usual(ask.Points[0])
	}
	_, may, ok := n.access.Widened(p, ask)
	if !ok {
		return refusal
	}
	asked := Asked{Who: p.ID, Tool: ask.Name()}
	if text, err := json.Marshal(args, json.Deterministic(true)); err == nil && len(text) <= maxWished {
		asked.Args = text
	}
	take := func() (Place, error) { return n.Hold(p, wishes) }
	answer, fresh, err := n.requests.wish(asked, wish{who: p, ask: ask}, take)
	switch {
	case err != nil:
		return refusal // it wishes for too much already
	case answer == no:
		return device.Faultf(device.Denied, "%w; an owner was asked, and said no for now", refusal)
	case fresh:
		slog.Info("a program asks for more: agentsite approve lists it", "who", p.ID, "would_be_allowed", may)
		n.hub.Announce(agents.Change{Approvals: true})
	}
	return device.Faultf(device.Denied,
		"%w; an owner is asked now, and may or may not allow it: a later try may succeed", refusal)
}

// MayWish returns why a call of p would be no Wish: only that of a program that signed in is.
func (n *Node) MayWish(p agents.Principal, ask agents.Ask) error {
	if err := known(p); err != nil {
		return err
	}
	if n.access != nil && p.Kind == principal.Token {
		if _, _, ok := n.access.Widened(p, ask); ok {
			return nil
		}
	}
	return device.Faultf(device.Denied, "you may not ask an owner for this")
}

// wishes returns the Wishes of an offer. A release is none: it comes with the tools that move an output.
func (v *view) wishes(o *agents.Offer) map[string][]string {
	whole, all := v.site.whole.offer(), make(map[string][]string)
	for _, t := range op.Tools {
		ask := agents.Ask{Op: t.Of.Operation, Value: t.Value}
		var names []string
		switch {
		case t.Whole != nil:
			if *t.Whole(o) || !*t.Whole(whole) {
				continue
			}
		case t.Points != nil && t.Name != tools.ReleaseOutput:
			points := *t.Points(whole)
			if len(*t.Points(o)) > 0 || len(points) == 0 {
				continue
			}
			names = slices.DeleteFunc(slices.Clone(points), func(address string) bool { return !v.reads(address) })
			ask.Points = append(names[:len(names):len(names)], points[0])[:1]
		default:
			continue
		}
		if v.wish(ask) {
			all[t.Name] = names
		}
	}
	return all
}

// wish notes a wish, once more where it is there already. It returns the owner's answer.
func (all *requests) wish(a Asked, w wish, take func() (Place, error)) (answer answer, fresh bool, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget()
	var r *request
	for _, other := range all.all {
		if o := other.wish; o != nil && o.same(w) {
			r = other
		}
	}
	if fresh = r == nil; fresh {
		if _, r, err = all.begin(a, wishTime, take); err != nil {
			return unanswered, false, err
		}
		r.wish = new(wish)
	}
	if r.answer == unanswered {
		w.times, w.last = r.wish.times+1, time.Now()
		r.asked, *r.wish, r.until = a, w, w.last.Add(wishTime)
	}
	return r.answer, fresh, nil
}

// Wishes are those that wait for an owner, the oldest first. Only an owner sees them.
func (n *Node) Wishes(p agents.Principal) ([]Wish, error) {
	if err := owner(p); err != nil {
		return nil, err
	}
	return n.wishes(), nil
}

// wishes returns the wishes without an answer, and forgets those that have nothing to ask for any more.
func (n *Node) wishes() (out []Wish) {
	all := &n.requests
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget()
	for h, r := range all.all {
		if r.wish == nil {
			continue
		}
		token, may, ok := n.access.Widened(r.wish.who, r.wish.ask)
		switch {
		case !ok:
			all.drop(h)
		case r.answer == unanswered:
			out = append(out, Wish{
				h, r.asked.Who, token, may, r.asked.Tool, r.asked.Args,
				r.wish.times, time.Since(r.wish.last), time.Until(r.until),
			})
		}
	}
	slices.SortFunc(out, func(a, b Wish) int {
		return cmp.Or(cmp.Compare(a.Left, b.Left), cmp.Compare(a.Handle, b.Handle))
	})
	return out
}
