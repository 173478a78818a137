package access

import (
	"encoding/base64"
	"errors"
	"strings"

	"agentsite/node/identity"
)

// GrantLink is a grant with the address of its site, as a text that its holder is given. It is
// no secret: only the holder's key can use it.
type GrantLink struct {
	Site      identity.ID
	Name      string   // of the site, as the issuer calls it
	Addresses []string // where it may be reached, the best first
	Grant     *Grant
}

// grantPrefix is before a grant, where an Invitation has its secret.
const grantPrefix = "grant."

// String returns agentsite://KEY/grant.BASE64/NAME@ADDRESS+ADDRESS, which is safe in a shell.
func (p GrantLink) String() string {
	if !ShellSafe(p.Name) {
		p.Name = ""
	}
	return siteText(p.Site, grantPrefix+base64.RawURLEncoding.EncodeToString(p.Grant.Bytes()), p.Name+"@", p.Addresses)
}

var errGrantLink = errors.New("invalid grant: it looks like " + scheme + "z6Mk…/grant.…/shed@192.168.1.20:8474: copy it whole")

// ParseGrantLink reverses GrantLink.String.
func ParseGrantLink(text string) (p GrantLink, err error) {
	id, proof, rest, err := parseSite(text, maxURI+2*maxGrant)
	coded, isGrant := strings.CutPrefix(proof, grantPrefix)
	name, addresses, named := strings.Cut(rest, "@")
	if err != nil || !isGrant || !named {
		return p, errGrantLink
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err != nil {
		return p, errGrantLink
	}
	if p.Grant, err = ParseGrant(raw); err != nil {
		return p, err
	}
	if p.Addresses, err = parseAddresses(addresses); err != nil {
		return p, errGrantLink
	}
	p.Site, p.Name = id, name
	return p, nil
}
