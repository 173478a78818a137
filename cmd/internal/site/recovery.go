package site

import (
	"context"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

// RecoveryMethod makes the code with which somebody who lost every owner's key gets the
// site back. RecoverMethod takes it, with the key that is to be the only owner.
const (
	RecoveryMethod = "owner/recovery"
	RecoverMethod  = "owner/recover"
)

// MadeRecovery answers RecoveryMethod.
type MadeRecovery struct {
	Code string `json:"code"` // nobody is told again
}

// Recovery is the parameters of RecoverMethod.
type Recovery struct {
	Code string `json:"code"`
	DID  string `json:"did"`
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
		err := door.Own(who, "owners recover", r.DID, func() error {
			id, err := identity.Parse(r.DID)
			if err != nil {
				return err
			}
			return b.Recover(ctx, r.Code, access.Owner{ID: id})
		})
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
		}
		return struct{}{}, nil
	})
}
