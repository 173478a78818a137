package owner

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/transport/fault"
	"agentsite/transport/rpc"
)

// The methods for any caller that proved a key to the carrier. On a network, a site that
// nobody owns answers nothing else.
const (
	ChallengeMethod op.Name[op.None, challenge]     = "claim/challenge" // the first step of a claim
	ProveMethod     op.Name[access.Proof, claimed]  = "claim/prove"     // the second step: makes the caller the owner
	ReclaimMethod   op.Name[acts.Recovery, op.None] = "claim/recover"   // makes the caller the only owner, by a code
	// PresentMethod stores a grant that the site was not told of; without one, it ends those that the
	// caller presented.
	PresentMethod op.Name[acts.Signed, acts.Reached] = "grant/present"
)

// challenge answers ChallengeMethod.
type challenge struct {
	Challenge [32]byte `json:"challenge"`
}

// claimed answers ProveMethod.
type claimed struct {
	Answer access.Answer `json:"answer"`
	Name   string        `json:"name"` // of the site
}

type methods map[string]rpc.Method

// Methods returns the owners' operations as methods, and those for callers with a proven key, but
// for the claim's. Each decides by the sender of its own call.
func Methods(s *acts.Site) map[string]rpc.Method {
	all := make(methods)
	for _, row := range s.Operations() {
		all[row.Name] = func(ctx context.Context, c *rpc.Call) (any, error) {
			v, err := row.Do(ctx, c.Who, c.Params.Decode)
			switch {
			case err != nil && s.Node.Owner(c.Who) != nil: // for everybody else there is no such method
				return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%v", err)
			case err != nil:
				return nil, rpc.Errorf(fault.Code(device.AsFault(err).Kind), "%v", err)
			}
			return v, nil
		}
	}
	forKeys(all, ReclaimMethod, func(ctx context.Context, id identity.ID, r acts.Recovery) (op.None, error) {
		return op.None{}, s.Recover(ctx, agents.Principal{Kind: principal.Key, ID: id.String(), Owner: true}, id, r.Code)
	})
	forKeys(all, PresentMethod, func(_ context.Context, who identity.ID, p acts.Signed) (acts.Reached, error) {
		if len(p.Grant) == 0 && s.Access.Withdraw(who) {
			return acts.Reached{}, nil
		}
		if _, err := s.Access.Present(who, p.Grant); err != nil {
			return acts.Reached{}, device.Faultf(device.Denied, "%w", err)
		}
		return acts.Reached{At: s.Addresses()}, nil
	})
	return all
}

// forKeys adds a method for every caller that proved a key to the carrier.
func forKeys[R, A any](all methods, name op.Name[R, A], do func(ctx context.Context, who identity.ID, r R) (A, error)) {
	all[string(name)] = func(ctx context.Context, c *rpc.Call) (any, error) {
		if c.Key == "" {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound,
				"a site is claimed by a key: run agentsite claim with the address that the site shows")
		}
		who, err := identity.Parse(c.Key)
		if err != nil {
			return nil, err
		}
		var r R
		if err := c.Params.Decode(&r); err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		v, err := do(ctx, who, r)
		if err != nil {
			return nil, rpc.Errorf(fault.Code(device.AsFault(err).Kind), "%v", err)
		}
		return v, nil
	}
}
