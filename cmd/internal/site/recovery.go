package site

import (
	"context"
	"net/http"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

// RecoveryMethod makes the code with which somebody who lost every owner's key gets the
// site back. RecoverMethod takes it on the site's own machine, with the key that is to be
// the only owner; ReclaimMethod, which is no owner's, from afar, for a key that was proved.
const (
	RecoveryMethod = "owner/recovery"
	RecoverMethod  = "owner/recover"
	ReclaimMethod  = "claim/recover"
)

// MadeRecovery answers RecoveryMethod.
type MadeRecovery struct {
	Code string `json:"code"` // nobody is told again
}

// Recovery is the parameters of RecoverMethod.
type Recovery struct {
	Code string `json:"code"`
	DID  string `json:"did,omitzero"` // of RecoverMethod
}

func addRecovery(methods map[string]rpc.Method, door *node.Node, b *access.Book) {
	methods[RecoveryMethod] = ownersOnly(door, "owners recovery", func(_ context.Context, who agents.Principal, _ string) (any, error) {
		var made MadeRecovery
		err := door.Own(who, "owners recovery", "", func() (err error) {
			made.Code, err = b.NewRecovery()
			return err
		})
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return made, nil
	})
	methods[RecoverMethod] = ownersMethod(door, "owners recover", func(ctx context.Context, who agents.Principal, r Recovery) (any, error) {
		id, err := identity.Parse(r.DID)
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return recoverFor(ctx, door, b, who, id, r.Code)
	})
}

func addReclaim(methods map[string]rpc.Method, door *node.Node, b *access.Book) {
	methods[ReclaimMethod] = func(ctx context.Context, c *rpc.Call) (any, error) {
		id, err := caller(c)
		if err != nil {
			return nil, err
		}
		var r Recovery
		if err := c.Params.Decode(&r); err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
		}
		return recoverFor(ctx, door, b, agents.Principal{ID: id.String(), Owner: true}, id, r.Code)
	}
}

// recoverFor writes down only what was right: anybody may be wrong as often as they like.
func recoverFor(ctx context.Context, door *node.Node, b *access.Book, who agents.Principal, id identity.ID, code string) (any, error) {
	if err := b.Recover(ctx, code, access.Owner{ID: id}); err != nil {
		return nil, rpc.Errorf(http.StatusForbidden, "%v", err)
	}
	return struct{}{}, door.Own(who, "owners recover", id.String(), func() error { return nil })
}
