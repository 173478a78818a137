package access

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"

	"agentsite/node/identity"
)

const (
	scheme       = "agentsite"
	maxAddresses = 8
	maxURI       = 1 << 10
)

// Invitation is what a site shows to be claimed by, as a URI that a QR code can hold.
type Invitation struct {
	Site        identity.ID
	Secret      Secret
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
	u := url.URL{Scheme: scheme, Host: i.Site.PeerID(), RawQuery: q.Encode(), Fragment: base64.RawURLEncoding.EncodeToString(i.Secret[:])}
	return u.String()
}

var errInvitation = errors.New("this is no address to claim a site by, which looks like agentsite://12D3KooW…?at=192.168.1.20:8473#…: copy it whole, and put it in quotes")

// ParseInvitation reads what String wrote. Its error shows nothing of the text, which
// may hold a secret.
func ParseInvitation(text string) (i Invitation, err error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURI || u.Scheme != scheme || u.User != nil || u.Path != "" {
		return i, errInvitation
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil || len(q["at"]) > maxAddresses || len(q["cert"]) > 1 {
		return i, errInvitation
	}
	secret, err := base64.RawURLEncoding.Strict().DecodeString(u.Fragment)
	if err != nil || len(secret) != len(i.Secret) {
		return i, errInvitation
	}
	i.Secret, i.Addresses = Secret(secret), q["at"]
	if q.Has("cert") {
		if i.Certificate, err = hex.DecodeString(q.Get("cert")); err != nil || len(i.Certificate) != 32 {
			return i, errInvitation
		}
	}
	if i.Site, err = identity.Parse(u.Host); err != nil {
		return i, errInvitation
	}
	return i, nil
}
