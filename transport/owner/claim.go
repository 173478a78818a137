package owner

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

// Claim lets the first caller that knows a site's secret become its owner.
type Claim struct {
	Node    *node.Node
	Access  *access.Store
	Key     identity.Key // the site's
	Name    string
	File    string // where the address to claim the site by is kept while nobody owns it
	Claimed func() // is called once somebody has claimed the site

	open *access.Claim // nil where somebody owned the site from the start
}

// Open starts the period in which an unowned site can be claimed. It returns the methods for the
// claim and the site's address. If the site has no owner, the address includes the secret, and is
// also written to the file. secret is the configuration's; for "" Open makes the site's own.
// addresses are where others reach the site.
func (c *Claim) Open(secret string, addresses []string) (map[string]rpc.Method, *access.Invitation, error) {
	all := make(methods)
	forKeys(all, ChallengeMethod, c.challenge)
	forKeys(all, ProveMethod, c.prove)
	i := &access.Invitation{Site: c.Key.ID(), Addresses: addresses}
	if c.Access.Claimed() {
		c.Close()
		slog.Info("its owners make this site known on their own machines with agentsite claim", "address", i.String())
		return all, i, nil
	}
	var err error
	if secret == "" {
		i.Secret, err = c.Access.ClaimSecret()
	} else {
		i.Secret, err = access.ParseSecret(secret)
	}
	if err != nil {
		return nil, nil, err
	}
	c.open = access.NewClaim(c.Key, i.Secret, c.take)
	if err := state.WriteAtomic(c.File, i.Text(), 0o600); err != nil {
		slog.Warn("the address to claim this site by is in no file", "err", err)
	}
	slog.Info("nobody owns this site: it can be claimed for fifteen minutes", "address", i.String())
	return all, i, nil
}

// Close removes the file of a site that cannot be claimed, or not any more.
func (c *Claim) Close() {
	if err := os.Remove(c.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("a file with a secret that is used up stays; remove it", "err", err)
	}
}

var errOwned = device.Faultf(device.Denied, "this site has an owner already: have its owner grant you something")

func (c *Claim) challenge(_ context.Context, who identity.ID, _ op.None) (challenge, error) {
	if c.Access.Claimed() {
		return challenge{}, errOwned
	}
	random, err := c.open.Challenge(who)
	if err != nil {
		return challenge{}, device.Faultf(device.Denied, "%w", err)
	}
	return challenge{random}, nil
}

func (c *Claim) prove(ctx context.Context, who identity.ID, p access.Proof) (claimed, error) {
	if p.Claimant != who { // a caller forwards the proof of another key
		return claimed{}, device.Faultf(device.Denied, "this is the proof of another key")
	}
	if c.Access.Claimed() {
		return claimed{}, errOwned
	}
	answer, err := c.open.Accept(ctx, p)
	if err != nil {
		return claimed{}, device.Faultf(device.Denied, "%w", err)
	}
	c.Node.Recheck()
	c.Claimed()
	return claimed{answer, c.Name}, nil
}

// take makes the first owner.
func (c *Claim) take(id identity.ID) error {
	who := agents.Principal{Kind: principal.Key, ID: id.String(), Owner: true}
	err := c.Node.Own(who, "claim", "", func() error { return c.Access.Claim(access.Owner{ID: id}) })
	if err == nil {
		slog.Info("this site is owned now", "owner", id.String())
		c.Close()
	}
	return err
}
