package site

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"

	"github.com/go-json-experiment/json"
	"github.com/multiformats/go-multiaddr"
)

// Connection is a site that was dialled. What the site says is data: what is signed for it
// names the key that it proved, and nothing that it answers is passed on as a token, a
// code or an address that is none. Close it.
type Connection struct {
	*client.Client
	io.Closer
	dialled identity.ID // zero where a socket or a token stands for the site
	name    string      // by which the person knows it, "" for none
}

// errOtherSite refuses a site that says it is another than the one that was dialled.
func errOtherSite(dialled, says string) error {
	return state.Mistakef("the site that was dialled has the key %s and says that it has %.100q: nothing was signed or sent; do not trust it with anything", dialled, says)
}

// Access asks who may do what at the site. A site that names another key than the one that
// was dialled is refused, and so is one behind a socket that cannot prove its key.
func (c *Connection) Access(ctx context.Context) (Access, error) {
	challenge := make([]byte, 32)
	rand.Read(challenge)
	var all Access
	if err := ownersAsk(ctx, c.Client, AccessMethod, AccessParams{challenge}, &all); err != nil {
		return Access{}, err
	}
	id, err := identity.Parse(all.Site)
	switch {
	case c.dialled != identity.ID{} && id != c.dialled:
		return Access{}, errOtherSite(c.dialled.String(), all.Site)
	case err != nil:
		return Access{}, errors.New("the site does not say which key it has")
	case c.dialled == identity.ID{} && !access.ProvedSite(id, challenge, all.Proof):
		return Access{}, errors.New("the site did not prove its key, and nothing was signed for it: is it of another version? Restart it, or reach it with --site")
	}
	all.id = id
	if all.Name = cmp.Or(c.name, all.Name); device.CheckName(all.Name) != nil {
		all.Name = ""
	}
	all.At = addressesIn(all.At)
	return all, nil
}

// AddToken has the site make a token of a permission that was signed for it.
func (c *Connection) AddToken(ctx context.Context, n NewToken) (m MadeToken, err error) {
	if err = ownersAsk(ctx, c.Client, TokenMethod, n, &m); err == nil && !state.IsToken(m.Token) {
		err = errors.New("the site answered with something that is no token")
	}
	if m.Owner != "" { // it can only be whose key signed
		var me state.Identity
		if me, err = OwnerIdentity(); err == nil {
			m.Owner = me.DID
		}
	}
	m.Until = n.Until
	return m, err
}

// NewRecovery has the site make a recovery code.
func (c *Connection) NewRecovery(ctx context.Context) (m MadeRecovery, err error) {
	if err = ownersAsk(ctx, c.Client, RecoveryMethod, nil, &m); err == nil && !access.IsRecovery(m.Code) {
		m, err = MadeRecovery{}, errors.New("the site answered with something that is no recovery code")
	}
	return m, err
}

// ownersAsk calls a method outside MCP and decodes what it answers.
func ownersAsk(ctx context.Context, c *client.Client, method string, params, into any) error {
	text, err := c.Owner(ctx, method, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("the site's answer to %s cannot be read: %w", method, err)
	}
	return nil
}

// maxAddress is longer than any address that a site has.
const maxAddress = 256

// addressesIn keeps what can be the address of a site, host:port or a multiaddr, and no
// more of them than are remembered.
func addressesIn(all []string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(a string) bool { return !isAddress(a) })
	return all[:min(len(all), maxNear+maxFar)]
}

func isAddress(a string) bool {
	if len(a) > maxAddress {
		return false
	}
	if strings.HasPrefix(a, "/") {
		_, err := multiaddr.NewMultiaddr(a) // its names may be anything
		return err == nil && access.Plain(a)
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil || host == "" || !access.Plain(host) || strings.Contains(host, "/") {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
