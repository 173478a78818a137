package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/owner"

	"github.com/go-json-experiment/json"
)

// Caller calls a JSON-RPC method outside MCP, and returns its result as JSON.
type Caller interface {
	CallMethod(ctx context.Context, method string, params any) ([]byte, error)
}

// Client calls the owner's methods of one site. It is safe for concurrent use where its
// Caller is. Each call blocks until the site answers or ctx ends.
type Client struct {
	site   Caller
	pinned identity.ID // zero where a socket or a token stands for the site
	name   string      // by which the user knows the site; "" for none
}

// New makes a client. pinned is the key that the carrier verified, the zero ID for a carrier that
// verifies none; name is the user's name for the site.
func New(site Caller, pinned identity.ID, name string) *Client { return &Client{site, pinned, name} }

// Call calls one of the owner's methods. The result is unchecked: use Client's method of the same
// name where there is one.
func Call[P, R any](ctx context.Context, c *Client, method op.Name[P, R], params P) (result R, err error) {
	text, err := c.site.CallMethod(ctx, string(method), params)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("the site's answer to %s cannot be read: %w", method, err)
	}
	return result, nil
}

// Access lists owners, grants and tokens. It refuses a site that names another key than the pinned
// one. Without a pinned key, it refuses a site that does not prove the key that it names.
func (c *Client) Access(ctx context.Context) (Access, error) {
	challenge := make([]byte, 32)
	rand.Read(challenge)
	all, err := Call(ctx, c, acts.AccessAct, acts.AccessParams{Challenge: challenge})
	if err != nil {
		return Access{}, err
	}
	id, err := identity.Parse(all.Site)
	switch {
	case c.pinned != identity.ID{} && id != c.pinned:
		return Access{}, state.Mistakef("the site that was dialled has the key %s and says that it has %.100q: nothing was signed or sent; do not trust it with anything", c.pinned, all.Site)
	case err != nil:
		return Access{}, errors.New("the site does not say which key it has")
	case c.pinned == identity.ID{} && !access.VerifySite(id, challenge, all.Proof):
		return Access{}, errors.New("the site did not prove its key, and nothing was signed for it: is it of another version? Restart it, or reach it with --site")
	}
	if all.Name = cmp.Or(c.name, all.Name); device.CheckName(all.Name) != nil {
		all.Name = ""
	}
	all.At = Addresses(all.At)
	return Access{all, id}, nil
}

// AddToken asks the site for a token that stands for a permission signed for it.
func (c *Client) AddToken(ctx context.Context, n acts.NewToken) (m acts.MadeToken, err error) {
	m, err = Call(ctx, c, acts.TokenAct, n)
	if err == nil && !state.IsToken(m.Token) {
		err = errors.New("the site answered with something that is no token")
	}
	if err != nil {
		return acts.MadeToken{}, err
	}
	if m.Owner != "" { // it can only be the signer
		g, err := access.ParseGrant(n.Grant)
		if err != nil {
			return m, err
		}
		m.Owner = g.Issuer.String()
	}
	m.Until = n.Until
	return m, nil
}

// OfferTime tells the site the time of an owner's machine, which it takes within bounds.
func (c *Client) OfferTime(ctx context.Context, now time.Time) (acts.Reached, error) {
	return Call(ctx, c, acts.TimeAct, acts.TimeNow{Now: now})
}

// NewRecovery asks the site for a new recovery code.
func (c *Client) NewRecovery(ctx context.Context) (acts.MadeRecovery, error) {
	m, err := Call(ctx, c, acts.RecoveryAct, acts.None{})
	if err == nil && !access.IsRecovery(m.Code) {
		return acts.MadeRecovery{}, errors.New("the site answered with something that is no recovery code")
	}
	return m, err
}

// Present shows the site a grant that the caller's key has; nil ends what it presented before.
func (c *Client) Present(ctx context.Context, grant []byte) (acts.Reached, error) {
	return Call(ctx, c, owner.PresentMethod, acts.Signed{Grant: grant})
}

// Claim makes key the owner of the pinned site, by the secret that the site shows, and returns the
// site's own name. The secret never leaves this machine.
func (c *Client) Claim(ctx context.Context, key identity.Key, secret access.ClaimSecret) (name string, err error) {
	if !c.pinned.Valid() {
		return "", errors.New("a site is claimed by a connection that verifies its key")
	}
	challenge, err := Call(ctx, c, owner.ChallengeMethod, acts.None{})
	if err != nil {
		return "", err
	}
	proof := access.Prove(key, c.pinned, secret, challenge.Challenge)
	claimed, err := Call(ctx, c, owner.ProveMethod, proof)
	if err != nil {
		return "", err
	}
	if !proof.VerifyAnswer(c.pinned, secret, claimed.Answer) {
		return "", errors.New("the site did not show that it knows the secret: look whether the address is whole, and whether agentsite owners on the site's machine lists your key")
	}
	return claimed.Name, nil
}
