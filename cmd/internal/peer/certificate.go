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

// SiteCertificate returns the certificate, in PEM, that a standard HTTPS client has to trust to
// reach the folder's site. It is public and lasts as long as the site's key, which is created
// where there is none.
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

// ContactCertificate fetches the SiteCertificate of a contact from the contact.
func ContactCertificate(ctx context.Context, t Target) (string, error) {
	p, err := User()
	if err != nil {
		return "", err
	}
	k, err := p.find(ctx, t.Site, t.Version, t.Progress)
	if err != nil {
		return "", err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return "", err
	}
	secured, err := web.ClientTLS(identity.New(), id) // the certificate is public, so a new key will do
	if err != nil {
		return "", err
	}
	near, _ := splitAddresses(k.Addresses)
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	conn, err := lanDialer{site: id, addresses: near, secured: secured}.dial(ctx, "tcp", "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	authority := shown[len(shown)-1]
	if !web.IsAuthority(authority, id) {
		return "", fmt.Errorf("%s presented no certificate of its own: run agentsite identity --certificate on its machine", t.Site)
	}
	return certificateText(authority.Raw), nil
}
