package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
)

// Claim makes the person the owner of the site with an invitation address. Given a site's key, or
// its name on this network, it adds a site that the person owns already to the contacts. name is
// the contact's, which no other contact may have. For "" the contact keeps its name, or gets the
// site's own, with a number if that is in use. Of t only Version, Wait and Progress are used. code
// is the recovery code, "" for a site that the person owned already. Once the site is owned, k and
// code are returned also with an error.
func (p Person) Claim(ctx context.Context, text, name string, t Target) (k Contact, code string, err error) {
	i, err := p.findInvitation(ctx, text, t.Version)
	if err != nil {
		return k, "", err
	}
	known, err := p.Contacts().List() // fails before the site is owned
	if err == nil && name != "" {
		err = checkUnused(known, name, i.Site.String())
	}
	if err != nil {
		return k, "", err
	}
	key, err := p.Key()
	if err != nil {
		return k, "", err
	}
	out, err := userNetwork(key, t.Version)
	if err != nil {
		return k, "", err
	}
	defer out.Close()
	c, w, err := newSession(key, i.Site, func() []string { return i.Addresses }, nil, rpc.JSON, out, t.Version)
	if err != nil {
		return k, "", err
	}
	w.timeout, w.retry, w.progress = t.timeout(), t.Wait > 0, t.Progress
	site := connected(c, out, i.Site, "").Owner
	var called string
	owned := i.Secret == access.ClaimSecret{} // an unowned site shows one
	if !owned {
		called, err = site.Claim(ctx, key, i.Secret)
		var refused *client.RequestError
		owned = errors.As(err, &refused) // perhaps: an answer was lost, or another owner or the configuration added the key
	}
	if owned {
		var refused *client.RequestError
		ours, asked := site.Access(ctx)
		switch {
		case asked == nil:
			called, err = ours.Name, nil
		case errors.As(asked, new(state.Mistake)): // the site names another key
			err = asked
		case err == nil && errors.As(asked, &refused):
			if _, err = ownerclient.Call(ctx, site, owner.ChallengeMethod, acts.None{}); err == nil {
				err = state.Mistakef("this site has no owner yet, and the address has no secret: copy the whole address that the site shows")
			}
		case err == nil:
			err = asked
		}
	}
	if err != nil {
		return k, "", err
	}
	k = Contact{Name: name, DID: i.Site.String(), Addresses: i.Addresses, Owner: true}
	err = p.Contacts().change(lockTimeout, func(all []Contact) ([]Contact, error) {
		if name == "" {
			k.Name = newName(all, called, k.DID)
		}
		return withContact(all, k)
	})
	if err != nil {
		err = fmt.Errorf("you own the site, but it is not stored here: %w; claim it again when that is corrected", err)
	}
	if !owned {
		made, asked := site.NewRecovery(ctx)
		if asked != nil {
			err = joinReasons(err, fmt.Errorf("no recovery code was created: run agentsite owners recovery --site %s (%w)", k.Name, asked))
		}
		code = made.Code
	}
	if told := p.greet(ctx, Contact{Owner: true}, c, w.timeout); told != nil {
		slog.Warn("the site's time was not set", "site", k.Name, "err", told)
	}
	return k, code, err
}

// checkUnused refuses an invalid name, and the name of another contact.
func checkUnused(known []Contact, name, did string) error {
	if err := device.CheckName(name); err != nil {
		return state.Mistakef("a site needs a valid name, with --name: %w", err)
	}
	if slices.ContainsFunc(known, func(k Contact) bool { return k.Name == name && k.DID != did }) {
		return state.Mistakef("you call another site %s: choose another name with --name", name)
	}
	return nil
}

// newName returns the name for a contact: its current name, or the site's own name, with a number
// if another contact has that.
func newName(known []Contact, called, did string) string {
	if i := slices.IndexFunc(known, func(k Contact) bool { return k.DID == did && device.CheckName(k.Name) == nil }); i >= 0 {
		return known[i].Name
	}
	if device.CheckName(called) != nil {
		called = "site"
	}
	name := called
	for n := 2; checkUnused(known, name, did) != nil; n++ {
		name = fmt.Sprintf("%.20s-%d", called, n) // no longer than a name may be
	}
	return name
}

// Accept stores a grant for the person and its site as a contact, named as by Claim. Whether the
// issuer owns the site cannot be verified here, so that it replaces only a grant that the same keys
// signed or that has ended.
func (p Person) Accept(text, name string) (Contact, error) {
	pass, err := access.ParseGrantLink(strings.TrimSpace(text))
	if err != nil {
		return Contact{}, state.Mistake{Err: err}
	}
	return p.accept(pass, name, func(have Contact) error {
		signers := pass.Grant.Signers()
		if had, err := access.ParseGrant(have.Grant); err == nil && !had.Expired(time.Now()) && !slices.Equal(had.Signers(), signers) {
			return state.Mistakef("you have a grant on %s from another key than %v, which signed this one; to use this one instead, run agentsite sites forget %[1]s first", have.Name, signers[len(signers)-1])
		}
		return nil
	})
}

// accept stores a grant. checkReplace may refuse to replace the contact's older grant.
func (p Person) accept(pass access.GrantLink, name string, checkReplace func(have Contact) error) (Contact, error) {
	key, err := p.Key()
	if err != nil {
		return Contact{}, err
	}
	if pass.Grant.Audience() != key.ID() {
		return Contact{}, state.Mistakef("this grant is for %v, and your key is %v: ask for a grant for your key", pass.Grant.Audience(), key.ID())
	}
	for _, b := range pass.Grant.Blocks {
		if b.Node != pass.Site && b.Node != (identity.ID{}) {
			return Contact{}, state.Mistakef("this grant is valid on %v, not on %v as it says: ask for another", b.Node, pass.Site)
		}
	}
	k := Contact{Name: name, DID: pass.Site.String(), Addresses: pass.Addresses, Grant: pass.Grant.Bytes()}
	err = p.Contacts().change(lockTimeout, func(all []Contact) ([]Contact, error) {
		if i := indexKey(all, k.DID); i >= 0 {
			have := all[i]
			if have.Owner {
				return nil, state.Mistakef("you own %s already and need no grant", have.Name)
			}
			if err := checkReplace(have); err != nil {
				return nil, err
			}
			k.Addresses = have.Addresses
			for _, at := range pass.Addresses { // they are not signed: the older ones stay first
				if !slices.Contains(k.Addresses, at) {
					k.Addresses = append(k.Addresses, at)
				}
			}
		}
		k.Addresses = ownerclient.Addresses(k.Addresses)
		if name == "" {
			k.Name = newName(all, pass.Name, k.DID)
		}
		return withContact(all, k)
	})
	return k, err
}
