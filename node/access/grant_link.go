package access

import (
	"encoding/base64"
	"errors"
	"strings"

	"agentsite/node/identity"
)

// GrantLink is a grant with where it counts, as a text that its holder is given. It is no
// secret: only the holder's key can use it.
type GrantLink struct {
	Site      identity.ID
	Name      string   // what the site is called by whoever passes it on
	Addresses []string // where it may be reached, the best first
	Grant     *Grant
}

// grantMark stands before a grant, where an Invitation has its secret.
const grantMark = "grant."

// String is agentsite://KEY/grant.BASE64/NAME@ADDRESS+ADDRESS, of letters that no shell
// acts on.
func (p GrantLink) String() string {
	if !ShellSafe(p.Name) {
		p.Name = ""
	}
	return siteText(p.Site, grantMark+base64.RawURLEncoding.EncodeToString(p.Grant.Bytes()), p.Name+"@", p.Addresses)
}

var errPass = errors.New("this is no grant, which looks like " + scheme + "z6Mk…/grant.…/shed@192.168.1.20:8474: copy it whole")

// ParseGrantLink reads what String wrote.
func ParseGrantLink(text string) (p GrantLink, err error) {
	id, proof, rest, err := parseSite(text, maxURI+2*maxGrant)
	coded, isGrant := strings.CutPrefix(proof, grantMark)
	name, addresses, named := strings.Cut(rest, "@")
	if err != nil || !isGrant || !named {
		return p, errPass
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err != nil {
		return p, errPass
	}
	if p.Grant, err = ParseGrant(raw); err != nil {
		return p, err
	}
	if p.Addresses, err = parseAddresses(addresses); err != nil {
		return p, errPass
	}
	p.Site, p.Name = id, name
	return p, nil
}
