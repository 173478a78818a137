package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
)

func (s *Site) aboutOwners() []op.Row {
	return []op.Row{
		op.ForOwners(AddOwnerAct, agents.Acts, "owners add", "Add an owner, by a did:key.",
			s.named("owners add", s.addOwner)),
		op.ForOwners(RemoveOwnerAct, agents.Acts, "owners remove", "Remove an owner.",
			s.named("owners remove", func(did string) error {
				id, err := identity.Parse(did)
				if err != nil {
					return err
				}
				return s.Access.RemoveOwner(id)
			})),
		op.ForOwners(RecoveryAct, agents.Acts, "owners recovery",
			"Make a code for the loss of every owner's key.", s.newRecovery),
		op.ForOwners(RecoverAct, agents.Acts, "owners recover", "Make a key the only owner, by that code.",
			func(ctx context.Context, who agents.Principal, r Recovery) (None, error) {
				id, err := identity.Parse(r.DID)
				if err != nil {
					return None{}, mistake(err)
				}
				return None{}, s.Recover(ctx, who, id, r.Code)
			}),
	}
}

func (s *Site) addOwner(did string) error {
	id, err := identity.Parse(did)
	switch {
	case err != nil:
		return err
	case !s.Access.Claimed():
		return s.Access.Claim(access.Owner{ID: id})
	}
	return s.Access.AddOwner(access.Owner{ID: id})
}

func (s *Site) newRecovery(_ context.Context, who agents.Principal, _ None) (made MadeRecovery, err error) {
	err = s.Node.Own(who, "owners recovery", "", func() (err error) {
		made.Code, err = s.Access.NewRecovery()
		return mistake(err)
	})
	return made, err
}

// Recover makes a key the only owner. Only a right code is journalled: wrong ones may come from
// anybody, as often as they like, and are Denied.
func (s *Site) Recover(ctx context.Context, who agents.Principal, id identity.ID, code string) error {
	if err := s.Access.Recover(ctx, code, access.Owner{ID: id}); err != nil {
		return device.Faultf(device.Denied, "%w", err)
	}
	return s.Node.Own(who, "owners recover", id.String(), func() error { return nil })
}
