package access

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"

	"agentsite/node/identity"
)

const (
	scheme       = "agentsite://"
	maxAddresses = 8
	maxURI       = 1 << 10

	didPrefix = "did:key:"
	noSecret  = "-"
)

// Invitation is the address for the claim of a site, as a text that is safe in a shell and fits a
// small QR code. Without a secret it only tells owners where the site is.
type Invitation struct {
	Site      identity.ID
	Secret    ClaimSecret // zero for none
	Addresses []string    // where it may be reached, host:port or a multiaddr, the best first
}

// String returns agentsite://KEY/SECRET/ADDRESS+ADDRESS: the key as in a did:key, "-" for no
// secret. An IPv6 host has no brackets, which some shells interpret: the port follows the
// last colon.
func (i Invitation) String() string {
	secret := noSecret
	if i.Secret != (ClaimSecret{}) {
		secret = i.Secret.Text()
	}
	return siteText(i.Site, secret, "", i.Addresses)
}

// claimCommand precedes the address in Invitation.Text.
const claimCommand = "agentsite claim "

// Text returns instructions for claiming the site, for a file.
func (i Invitation) Text() []byte {
	return fmt.Appendf(nil, "The first person to use this address owns the site. With agentsite on another machine, within\nfifteen minutes of the start of this one:\n\n  "+claimCommand+"%s\n", i)
}

// FindInvitation finds an Invitation with a secret in a text of Invitation.Text.
func FindInvitation(text []byte) (Invitation, error) {
	_, after, _ := bytes.Cut(text, []byte(claimCommand))
	uri, _, _ := bytes.Cut(after, []byte("\n"))
	i, err := ParseInvitation(string(uri))
	if err == nil && i.Secret == (ClaimSecret{}) {
		err = errInvitation
	}
	return i, err
}

// errInvitation is for a text that is no address, and incomplete for an address with a part
// missing. Neither shows anything of the text, which may hold a secret.
var errInvitation = errors.New("invalid claim address: it looks like " + scheme + "z6Mk…/SECRET/192.168.1.20:8474: copy it whole")

func incomplete(part string) error {
	return fmt.Errorf("incomplete claim address (%s): copy it from %s to its end", part, scheme)
}

// ParseInvitation reverses Invitation.String. Its error names a part that is missing.
func ParseInvitation(text string) (i Invitation, err error) {
	id, secret, addresses, err := parseSite(text, maxURI)
	if err != nil {
		return i, err
	}
	if secret != noSecret {
		if i.Secret, err = ParseSecret(secret); err != nil {
			return Invitation{}, incomplete("its secret, between the first two strokes after the key, has 22 letters")
		}
	}
	if i.Addresses, err = parseAddresses(addresses); err != nil {
		return Invitation{}, err
	}
	i.Site = id
	return i, nil
}

// ShellSafe reports whether a text has only characters that neither a shell nor a terminal
// interprets, and that are no separators in an Invitation or a GrantLink.
func ShellSafe(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/.:%_-", r))
	}) < 0
}

// siteText writes the common form of invitations and grant links. It omits addresses that are
// not ShellSafe, because sites send them and people paste the text into a shell.
func siteText(id identity.ID, proof, before string, addresses []string) string {
	var all []string
	for _, a := range addresses {
		if host, port, err := net.SplitHostPort(a); err == nil {
			a = host + ":" + port
		}
		if ShellSafe(a) {
			all = append(all, a)
		}
	}
	return scheme + strings.TrimPrefix(id.String(), didPrefix) + "/" + proof + "/" + before + strings.Join(all, "+")
}

// parseSite splits a text of siteText.
func parseSite(text string, longest int) (id identity.ID, proof, addresses string, err error) {
	rest, ours := strings.CutPrefix(text, scheme)
	if !ours || len(text) > longest {
		return id, "", "", errInvitation
	}
	key, rest, more := strings.Cut(rest, "/")
	if id, err = identity.Parse(didPrefix + key); err != nil {
		if id, err = identity.Parse(key); err != nil { // a peer ID, as people know it
			return id, "", "", incomplete("the site's key, which it begins with, has a part missing")
		}
	}
	if !more {
		return id, "", "", incomplete("it ends after the site's key, before the secret")
	}
	proof, addresses, _ = strings.Cut(rest, "/")
	return id, proof, addresses, nil
}

// parseAddresses splits the addresses of a siteText; there may be none.
func parseAddresses(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	all := strings.Split(text, "+")
	if len(all) > maxAddresses {
		return nil, errInvitation
	}
	for n, a := range all {
		if strings.HasPrefix(a, "/") && ShellSafe(a) {
			continue
		}
		if host, port, ok := strings.Cut(a, "]:"); ok && strings.HasPrefix(host, "[") { // as in a URL, with a zone or without
			a = strings.ReplaceAll(host[1:], "%25", "%") + ":" + port
		}
		colon := strings.LastIndexByte(a, ':')
		if colon <= 0 || colon == len(a)-1 || strings.Trim(a[colon+1:], "0123456789") != "" || strings.Contains(a, "/") || !ShellSafe(a) {
			return nil, incomplete("the last of where the site is reached looks like 192.168.1.20:8474")
		}
		all[n] = net.JoinHostPort(a[:colon], a[colon+1:])
	}
	return all, nil
}
