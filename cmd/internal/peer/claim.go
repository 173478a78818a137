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
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
)

// Claim makes the person the owner of the site that shows an address, or takes over one
// that is the person's already, by its key or by its name on this network. It remembers the
// site by the given name, which no other may have; "" is for the one that it has already
// here, or its own, with a number where that is another's. Of t, Version, Wait and Tell
// count. The code is the recovery code, "" where the person owned the site already. Once
// the site is owned, k says which it is, and the code is returned also with an error.
func (p Person) Claim(ctx context.Context, text, name string, t Target) (k Contact, code string, err error) {
	i, err := p.invitation(ctx, text, t.Version)
	if err != nil {
		return k, "", err
	}
	known, err := p.Sites() // what may fail here fails before the site is owned
	if err == nil && name != "" {
		err = unused(known, name, i.Site.String())
	}
	if err != nil {
		return k, "", err
	}
	key, err := p.key()
	if err != nil {
		return k, "", err
	}
	out, err := networkOf(key, t.Version)
	if err != nil {
		return k, "", err
	}
	defer out.Close()
	c, w, err := newSession(key, i.Site, func() []string { return i.Addresses }, nil, rpc.JSON, out, t.Version)
	if err != nil {
		return k, "", err
	}
	w.timeout, w.retry, w.progress = t.wait(), t.Wait > 0, t.Tell
	site := connected(c, out, i.Site, "").Owner
	var called string
	owned := i.Secret == access.ClaimSecret{} // or there would be one
	if !owned {
		called, err = site.Claim(ctx, key, i.Secret)
		var refused *client.Refusal
		owned = errors.As(err, &refused) // an answer was lost, another owner added us, or the configuration did
	}
	if owned {
		var refused *client.Refusal
		ours, asked := site.Access(ctx)
		switch {
		case asked == nil:
			called, err = ours.Name, nil
		case errors.As(asked, new(state.Mistake)): // it says that it is another
			err = asked
		case err == nil && errors.As(asked, &refused):
			if err = site.Claimable(ctx); err == nil {
				err = state.Mistakef("nobody owns this site yet, and the secret to claim it with is missing: copy the address that it shows, to its end")
			}
		case err == nil:
			err = asked
		}
	}
	if err != nil {
		return k, "", err
	}
	k = Contact{Name: name, DID: i.Site.String(), Addresses: i.Addresses, Owner: true}
	err = p.changeKnown(func(all []Contact) ([]Contact, error) {
		if name == "" {
			k.Name = newName(all, called, k.DID)
		}
		return with(all, k)
	})
	if err != nil {
		err = fmt.Errorf("you own the site, but it is not remembered here: %w; then claim it again", err)
	}
	if !owned {
		made, asked := site.NewRecovery(ctx)
		if asked != nil {
			err = joinReasons(err, fmt.Errorf("it made no recovery code: agentsite owners recovery --site %s does (%w)", k.Name, asked))
		}
		code = made.Code
	}
	if told := p.greet(ctx, Contact{Owner: true}, c, w.timeout); told != nil {
		slog.Warn("the site was not told the time", "site", k.Name, "err", told)
	}
	return k, code, err
}

// unused refuses a name that cannot be a site's, or by which another one is known.
func unused(known []Contact, name, did string) error {
	if err := device.CheckName(name); err != nil {
		return state.Mistakef("a site needs a name here, with --name: %w", err)
	}
	if slices.ContainsFunc(known, func(k Contact) bool { return k.Name == name && k.DID != did }) {
		return state.Mistakef("you know another site by the name %s: give this one another with --name", name)
	}
	return nil
}

// newName is a name for a site: the one by which it is known, or what it calls itself, with a
// number where that is another's.
func newName(known []Contact, called, did string) string {
	if i := slices.IndexFunc(known, func(k Contact) bool { return k.DID == did && device.CheckName(k.Name) == nil }); i >= 0 {
		return known[i].Name
	}
	if device.CheckName(called) != nil {
		called = "site"
	}
	name := called
	for n := 2; unused(known, name, did) != nil; n++ {
		name = fmt.Sprintf("%.20s-%d", called, n) // no longer than a name may be
	}
	return name
}

// Accept remembers a site on which the person was granted something, by that name, as
// Claim does. Whether its issuer owns the site is not known here: a grant that the person
// has takes the place of none but one by the same keys, and one that has ended.
func (p Person) Accept(text, name string) (Contact, error) {
	pass, err := access.ParseGrantLink(strings.TrimSpace(text))
	if err != nil {
		return Contact{}, state.Mistake{Err: err}
	}
	return p.accept(pass, name, func(have Contact) error {
		signers := pass.Grant.Signers()
		if had, err := access.ParseGrant(have.Grant); err == nil && !had.Expired(time.Now()) && !slices.Equal(had.Signers(), signers) {
			return state.Mistakef("you have a grant on %s already, and %v, who signed this one, did not sign that: if you want this one instead, run agentsite sites forget %[1]s first", have.Name, signers[len(signers)-1])
		}
		return nil
	})
}

// accept is Accept for a grant that takes the place of one that the person has where
// replaces does not refuse it.
func (p Person) accept(pass access.GrantLink, name string, replaces func(have Contact) error) (Contact, error) {
	key, err := p.key()
	if err != nil {
		return Contact{}, err
	}
	if pass.Grant.Audience() != key.ID() {
		return Contact{}, state.Mistakef("this grant is for %v, and you are %v: have it made for you", pass.Grant.Audience(), key.ID())
	}
	for _, b := range pass.Grant.Blocks {
		if b.Node != pass.Site && b.Node != (identity.ID{}) {
			return Contact{}, state.Mistakef("this grant counts on %v, and says that it is for %v: have another made", b.Node, pass.Site)
		}
	}
	k := Contact{Name: name, DID: pass.Site.String(), Addresses: pass.Addresses, Grant: pass.Grant.Bytes()}
	err = p.changeKnown(func(all []Contact) ([]Contact, error) {
		if i := slices.IndexFunc(all, func(have Contact) bool { return have.DID == k.DID }); i >= 0 {
			have := all[i]
			if have.Owner {
				return nil, state.Mistakef("you own %s already, and may do all there", have.Name)
			}
			if err := replaces(have); err != nil {
				return nil, err
			}
			k.Addresses = have.Addresses
			for _, at := range pass.Addresses { // nobody signed these: where it was stays first
				if !slices.Contains(k.Addresses, at) {
					k.Addresses = append(k.Addresses, at)
				}
			}
		}
		k.Addresses = ownerclient.Addresses(k.Addresses)
		if name == "" {
			k.Name = newName(all, pass.Name, k.DID)
		}
		return with(all, k)
	})
	return k, err
}
