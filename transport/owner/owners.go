package owner

import (
	"context"
	"net/http"

	"agentsite/agents"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

// addOwners adds the methods that change the owners, except those of the claim.
func (s *Site) addOwners(all methods) {
	forOwners(s, all, AddOwnerMethod, "owners add", s.change("owners add", func(did string) error {
		id, err := identity.Parse(did)
		switch {
		case err != nil:
			return err
		case !s.Access.Claimed():
			return s.Access.Claim(access.Owner{ID: id})
		}
		return s.Access.AddOwner(access.Owner{ID: id})
	}))
	forOwners(s, all, RemoveOwnerMethod, "owners remove", s.change("owners remove", func(did string) error {
		id, err := identity.Parse(did)
		if err != nil {
			return err
		}
		return s.Access.RemoveOwner(id)
	}))
	forOwners(s, all, RecoveryMethod, "owners recovery", func(_ context.Context, who agents.Principal, _ None) (made MadeRecovery, _ error) {
		err := s.Node.Own(who, "owners recovery", "", func() (err error) {
			made.Code, err = s.Access.NewRecovery()
			return err
		})
		return made, invalid(err)
	})
	forOwners(s, all, RecoverMethod, "owners recover", func(ctx context.Context, who agents.Principal, r Recovery) (None, error) {
		id, err := identity.Parse(r.DID)
		if err != nil {
			return None{}, invalid(err)
		}
		return None{}, s.recover(ctx, who, id, r.Code)
	})
	forKeys(all, ReclaimMethod, func(ctx context.Context, id identity.ID, r Recovery) (None, error) {
		return None{}, s.recover(ctx, agents.Principal{ID: id.String(), Owner: true}, id, r.Code)
	})
}

// recover makes a key the only owner. Only a right code is journalled: wrong ones may come
// from anybody, as often as they like.
func (s *Site) recover(ctx context.Context, who agents.Principal, id identity.ID, code string) error {
	if err := s.Access.Recover(ctx, code, access.Owner{ID: id}); err != nil {
		return rpc.Errorf(http.StatusForbidden, "%v", err)
	}
	return s.Node.Own(who, "owners recover", id.String(), func() error { return nil })
}
