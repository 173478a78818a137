package peer

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"

	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/web"
)

// SiteCertificate returns the certificate, in PEM, that a client without our keys has to trust
// to reach the folder's site over HTTPS. It is public and stays the same as long as the site's
// key, which is created where there is none.
func SiteCertificate(f state.Folder) (string, error) {
	key, err := f.Key()
	if err != nil {
		return "", err
	}
	der, err := web.Authority(key)
	if err != nil {
		return "", err
	}
	return certificateText(der), nil
}

func certificateText(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// KnownCertificate returns the SiteCertificate of a contact, as the contact shows it.
func KnownCertificate(ctx context.Context, t Target) (string, error) {
	p, err := User()
	if err != nil {
		return "", err
	}
	k, err := p.find(ctx, t.Site, t.Version, t.Tell)
	if err != nil {
		return "", err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return "", err
	}
	secured, err := web.ClientTLS(identity.New(), id) // whoever asks is shown it
	if err != nil {
		return "", err
	}
	near, _ := splitAddresses(k.Addresses)
	ctx, cancel := context.WithTimeout(ctx, t.wait())
	defer cancel()
	conn, err := lanDialer{site: id, addresses: near, secured: secured}.dial(ctx, "tcp", "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	authority := shown[len(shown)-1]
	if !web.IsAuthority(authority, id) {
		return "", fmt.Errorf("%s shows no certificate of its own: run agentsite identity --certificate on its machine", t.Site)
	}
	return certificateText(authority.Raw), nil
}
