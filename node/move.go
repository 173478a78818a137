package node

import (
	"context"
	"errors"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

const (
	maxKey    = 64
	maxWithin = 24 * time.Hour
)

// Journal is where it is written down what moves, and what lets a call that is repeated
// act once. Its errors are faults.
type Journal interface {
	// Replay returns what came of an earlier call with the same principal and key, nil
	// where there was none. It is refused where the key stands for another call, or
	// where nobody knows what came of it.
	Replay(Asked) (*Outcome, error)
	// Begin makes it durable that a call is about to be made, and blocks for the disk.
	// Then end is to be called once, with what came of it. Unless there is an earlier
	// one: then, and after an error, the call must not be made.
	Begin(Asked) (end func(Outcome), earlier *Outcome, err error)
	// Add writes down what was done without asking. It does not block.
	Add(Asked, Outcome)
	// Deny counts a call that was refused. It does not block.
	Deny(who, tool string, kind device.FaultKind)
}

// noJournal lets nothing move away from safe.
type noJournal struct{}

func (noJournal) Replay(Asked) (*Outcome, error) { return nil, nil }
func (noJournal) Begin(Asked) (func(Outcome), *Outcome, error) {
	return nil, nil, device.Faultf(device.Unavailable, "there is no journal to write to, so nothing moves away from safe")
}
func (noJournal) Add(Asked, Outcome)                    {}
func (noJournal) Deny(string, string, device.FaultKind) {}

// Asked is a call as the journal has it. It has the fields of its Call.
type Asked struct {
	Who, Tool string
	Args      []byte
	Key       string // "" for none
}

// Outcome is what came of a call. It has the fields of the journal's.
type Outcome struct {
	Fault string // its kind; "" when it was done
	Says  string
	Value []byte // JSON
}

// move has a call made that moves something. A return to safe waits for nothing; for
// all else the order is: was it asked before, would the guard refuse it, does an owner
// have to be asked, may it still, is it written down; and only then it is made.
//
// The first question comes before the guard's because what the first call has done may
// be the reason to refuse the second, which is to hear of the first instead.
func (n *Node) move(ctx context.Context, p agents.Principal, c agents.Call, asked Asked, plan *agents.Plan, limits agents.Limits) (agents.Result, error) {
	came := time.Now()
	if plan.Ask.Effect == agents.Returns {
		res, err := plan.Make(ctx, agents.Limits{})
		if !plan.Idle {
			n.journal.Add(asked, outcome(res, err))
		}
		return res, err
	}
	late, err := terms(c.Terms, &asked)
	if err != nil {
		return n.refuse(asked, err)
	}
	if earlier, err := n.journal.Replay(asked); earlier != nil || err != nil {
		return replayed(earlier, err)
	}
	if err := plan.Try(ctx, limits); err != nil {
		return n.refuse(asked, err)
	}
	limits, need, err := n.permit(p, c, asked, plan)
	if need != nil || err != nil {
		return agents.Result{NeedInput: need}, err
	}
	end, earlier, err := n.journal.Begin(asked)
	if earlier != nil || err != nil {
		return replayed(earlier, err)
	}
	var res agents.Result
	switch {
	case ctx.Err() != nil:
		err = device.Faultf(device.Expired, "the caller had gone before this could begin, and nothing was moved; call again with another key")
	case late > 0 && time.Since(came) > late:
		err = device.Faultf(device.Expired, "this could not begin within %v, and nothing was moved; call again with another key", late)
	default:
		// From here on the caller may go: who asks again is to hear what came of it.
		ctx = context.WithoutCancel(ctx)
		if res, err = plan.Make(ctx, limits); err == nil && !n.mayHold(p, plan.Ask.Points) { // revoked meanwhile
			res, err = agents.Result{}, errors.Join(errRevoked, plan.Undo(ctx))
		}
	}
	end(outcome(res, err))
	return res, err
}

// permit charges the permission that decides about a call, after an owner confirmed the
// call if that permission or the output demands it. An owner's own call is an owner's
// word. What an earlier look at the permissions said is not relied on: another call may
// have used up a rate meanwhile, so that a permission decides that demands more.
func (n *Node) permit(p agents.Principal, c agents.Call, asked Asked, plan *agents.Plan) (limits agents.Limits, need *agents.NeedInput, err error) {
	confirmed := n.owns(p)
	for demanded := plan.Confirm; ; demanded = true {
		if demanded && !confirmed {
			if asked.Args == nil {
				asked.Args, err = plan.Args()
			}
			if err == nil {
				need, err = n.requests.ask(asked, c.Exchange, func() (Place, error) { return n.Hold(p, approvals) })
			}
			if need != nil {
				return limits, need, err
			}
			confirmed = true
		}
		if err == nil {
			limits, err = n.take(p, plan.Ask, confirmed)
		}
		if err != nil {
			_, err = n.refuse(asked, err)
		}
		if err != nil || confirmed || !limits.Confirm {
			return limits, nil, err
		}
	}
}

// refuse counts a refusal.
func (n *Node) refuse(a Asked, err error) (agents.Result, error) {
	n.journal.Deny(a.Who, a.Tool, device.AsFault(err).Kind)
	return agents.Result{}, err
}

// terms checks what a caller asks beside the arguments, and takes over its key. Late is
// how long after its coming the call may still begin; 0 is for ever.
func terms(t agents.Terms, asked *Asked) (late time.Duration, err error) {
	if t.Key != nil {
		asked.Key = *t.Key
		ok := len(asked.Key) >= 1 && len(asked.Key) <= maxKey
		for _, b := range []byte(asked.Key) {
			ok = ok && b >= ' ' && b <= '~'
		}
		if !ok {
			return 0, device.Faultf(device.Invalid, "agentsite/idempotency-key: write 1 to %d printable characters of ASCII, others for each call", maxKey)
		}
	}
	if t.Within == nil {
		return 0, nil
	}
	if s := *t.Within; !(s > 0 && s <= maxWithin.Seconds()) {
		return 0, device.Faultf(device.Invalid, "agentsite/expires-in: write a number of seconds above 0, at most %v", maxWithin.Seconds())
	}
	return max(1, time.Duration(*t.Within*float64(time.Second))), nil
}

func outcome(res agents.Result, err error) Outcome {
	var o Outcome
	if err == nil {
		o.Value, err = json.Marshal(res.Value, json.Deterministic(true))
	}
	if err != nil {
		f := device.AsFault(err)
		o.Fault, o.Says = string(f.Kind), f.Msg
	}
	return o
}

// replayed is an earlier outcome as the answer to a later call.
func replayed(o *Outcome, err error) (agents.Result, error) {
	if err != nil {
		return agents.Result{}, err
	}
	if o.Fault != "" {
		return agents.Result{}, &device.Fault{Kind: device.FaultKind(o.Fault), Msg: o.Says}
	}
	var res agents.Result
	if err := json.Unmarshal(o.Value, &res.Value); err != nil {
		return res, device.Faultf(device.Internal, "the journal's record of this call cannot be read: %w", err)
	}
	return res, nil
}
