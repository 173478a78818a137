package access

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"agentsite/node/identity"
)

// Pass is a grant with where it counts, as a text that its holder is given. It is no
// secret: only the holder's key can use it.
type Pass struct {
	Site      identity.ID
	Name      string   // what the site is called by whoever passes it on
	Addresses []string // where it may be reached, the best first
	Grant     *Grant
}

// grantMark stands before a grant, where an Invitation has its secret.
const grantMark = "grant."

// String is agentsite://PEER?at=ADDRESS&name=NAME#grant.BASE64
func (p Pass) String() string {
	q := url.Values{"at": p.Addresses, "name": {p.Name}}
	return site(p.Site, q, grantMark+base64.RawURLEncoding.EncodeToString(p.Grant.Bytes()))
}

var errPass = errors.New("this is no grant, which looks like agentsite://12D3KooW…?at=192.168.1.20:8474&name=shed#grant.…: copy it whole, and put it in quotes")

// ParsePass reads what String wrote.
func ParsePass(text string) (p Pass, err error) {
	id, q, fragment, ok := parseSite(text, maxURI+2*maxGrant)
	coded, isGrant := strings.CutPrefix(fragment, grantMark)
	if !ok || !isGrant || len(q["name"]) > 1 {
		return p, errPass
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err != nil {
		return p, errPass
	}
	if p.Grant, err = Open(raw); err != nil {
		return p, err
	}
	p.Site, p.Name, p.Addresses = id, q.Get("name"), q["at"]
	return p, nil
}
