package access

import (
	"encoding/hex"
	"errors"
	"net/url"
	"strings"

	"agentsite/node/identity"
)

const (
	scheme       = "agentsite"
	maxAddresses = 8
	maxURI       = 1 << 10
)

// Invitation is what a site shows to be claimed by, as a URI that a QR code can hold. One
// without a secret tells a site's owners where it is.
type Invitation struct {
	Site        identity.ID
	Secret      Secret   // zero for none
	Addresses   []string // where it may be reached, the best first
	Certificate []byte   // SHA-256 of the one that it shows over TLS; nil for none
}

// String is agentsite://PEER?at=ADDRESS&cert=HEX#SECRET. The secret stands where no
// program sends it on.
func (i Invitation) String() string {
	q := url.Values{"at": i.Addresses}
	if i.Certificate != nil {
		q.Set("cert", hex.EncodeToString(i.Certificate))
	}
	secret := ""
	if i.Secret != (Secret{}) {
		secret = i.Secret.Text()
	}
	return site(i.Site, q, secret)
}

var errInvitation = errors.New("this is no address to claim a site by, which looks like agentsite://12D3KooW…?at=192.168.1.20:8474#…: copy it whole, and put it in quotes")

// ParseInvitation reads what String wrote. Its error shows nothing of the text, which
// may hold a secret.
func ParseInvitation(text string) (i Invitation, err error) {
	id, q, fragment, ok := parseSite(text, maxURI)
	if !ok || len(q["cert"]) > 1 {
		return i, errInvitation
	}
	if fragment != "" {
		if i.Secret, err = ParseSecret(fragment); err != nil {
			return i, errInvitation
		}
	}
	if q.Has("cert") {
		if i.Certificate, err = hex.DecodeString(q.Get("cert")); err != nil || len(i.Certificate) != 32 {
			return i, errInvitation
		}
	}
	i.Site, i.Addresses = id, q["at"]
	return i, nil
}

// site writes a URI that names a site.
func site(id identity.ID, q url.Values, fragment string) string {
	u := url.URL{Scheme: scheme, Host: id.PeerID(), RawQuery: strings.ReplaceAll(q.Encode(), "%3A", ":"), Fragment: fragment}
	return u.String()
}

// parseSite reads what site wrote.
func parseSite(text string, longest int) (id identity.ID, q url.Values, fragment string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > longest || u.Scheme != scheme || u.User != nil || u.Path != "" {
		return id, nil, "", false
	}
	if q, err = url.ParseQuery(u.RawQuery); err != nil || len(q["at"]) > maxAddresses {
		return id, nil, "", false
	}
	id, err = identity.Parse(u.Host)
	return id, q, u.Fragment, err == nil
}
