package site

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	httpcarrier "agentsite/transport/http"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// KnownSite is a site that this machine's user claimed or was granted something on. Its
// key is pinned: whoever else answers at its addresses is refused.
type KnownSite struct {
	Name      string   `json:"name"` // by which this user calls it
	DID       string   `json:"did"`
	Addresses []string `json:"addresses"` // host:port, the best first
	Owner     bool     `json:"owner,omitzero"`
	Grant     []byte   `json:"grant,omitzero"` // what this user may do, where that is not all
}

const knownName = "sites.json"

func knownFile() (string, error) {
	f, err := ownerFolder()
	return filepath.Join(filepath.Dir(string(f)), knownName), err
}

// KnownSites lists the sites that this machine's user knows.
func KnownSites() (all []KnownSite, err error) {
	file, err := knownFile()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the sites that you know cannot be read: %w; mend or remove %s", err, file)
	}
	return all, nil
}

// Known finds a site by its name.
func Known(name string) (KnownSite, error) {
	all, err := KnownSites()
	if err != nil {
		return KnownSite{}, err
	}
	i := slices.IndexFunc(all, func(k KnownSite) bool { return k.Name == name })
	if i < 0 {
		return KnownSite{}, Mistake{fmt.Errorf("you know no site %q: agentsite sites lists those that you claimed or were granted", name)}
	}
	return all[i], nil
}

// remember keeps a site, in the place of what was known of it before. Another's name is
// never taken.
func remember(k KnownSite) error {
	if err := device.CheckName(k.Name); err != nil {
		return Mistake{fmt.Errorf("a site needs a name here, with --name: %w", err)}
	}
	all, err := KnownSites()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(have KnownSite) bool { return have.DID == k.DID })
	if slices.ContainsFunc(all, func(have KnownSite) bool { return have.Name == k.Name && have.DID != k.DID }) {
		return Mistake{fmt.Errorf("you know another site by the name %s: give this one another with --name", k.Name)}
	}
	if i < 0 {
		i, all = len(all), append(all, KnownSite{})
	}
	all[i] = k
	return writeKnown(all)
}

// Forget forgets a site by its name.
func Forget(name string) error {
	if _, err := Known(name); err != nil {
		return err
	}
	all, err := KnownSites()
	if err != nil {
		return err
	}
	return writeKnown(slices.DeleteFunc(all, func(k KnownSite) bool { return k.Name == name }))
}

func writeKnown(all []KnownSite) error {
	file, err := knownFile()
	if err != nil {
		return err
	}
	text, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return writeAtomic(file, append(text, '\n'), 0o600)
}

// reachPatience is how long one address of a site may take.
const reachPatience = 4 * time.Second

// dialKey connects to a site that its key tells, with one of one's own.
func dialKey(key identity.Key, site identity.ID, addresses []string, codec rpc.Codec, version string) (*client.Client, error) {
	secured, err := httpcarrier.ClientTLS(key, site)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return reach(ctx, secured, addresses) }
	c := &httpcarrier.Client{URL: "https://" + HostName(site) + "/mcp", Codec: codec, HTTP: &http.Client{Transport: &http.Transport{DialTLSContext: dial}}}
	return client.New(c, "agentsite", version), nil
}

// reach connects to the first of a site's addresses at which it answers.
func reach(ctx context.Context, secured *tls.Config, addresses []string) (net.Conn, error) {
	err := error(Mistake{errors.New("no address of this site is known: claim it again, or have its owner tell you")})
	for i, at := range addresses {
		one, cancel := context.WithTimeout(ctx, reachPatience)
		conn, wrong := (&tls.Dialer{Config: secured}).DialContext(one, "tcp", at)
		cancel()
		if wrong == nil {
			return conn, nil
		}
		if i == 0 {
			err = nil
		}
		err = errors.Join(err, fmt.Errorf("%s: %v", at, wrong)) // what it is of is not for callers: nothing was asked yet
	}
	return nil, err
}

// KnownCertificate is SiteCertificate of a site that this user knows, from itself.
func KnownCertificate(ctx context.Context, name string) (string, error) {
	k, err := Known(name)
	if err != nil {
		return "", err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return "", err
	}
	secured, err := httpcarrier.ClientTLS(identity.New(), id) // whoever asks is shown it
	if err != nil {
		return "", err
	}
	conn, err := reach(ctx, secured, k.Addresses)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	authority := shown[len(shown)-1]
	if key, ok := authority.PublicKey.(ed25519.PublicKey); !ok || !key.Equal(ed25519.PublicKey(id[:])) {
		return "", fmt.Errorf("%s shows no certificate of its own: run agentsite identity --certificate on its machine", name)
	}
	return certificateText(authority.Raw), nil
}

// dialKnown connects to a site that this user knows. An owner tells it the time, which a
// board without a clock has from nobody else; others show what they were granted, which
// the site may not have been told of.
func dialKnown(t Target) (*client.Client, error) {
	k, err := Known(t.Site)
	if err != nil {
		return nil, err
	}
	key, err := ownerKey()
	if err != nil {
		return nil, err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, err
	}
	codec := rpc.JSON
	if t.CBOR {
		codec = rpc.CBOR
	}
	c, err := dialKey(key, id, k.Addresses, codec, t.Version)
	if err != nil {
		return nil, err
	}
	method, what := PresentMethod, any(Signed{k.Grant})
	if k.Owner {
		method, what = TimeMethod, TimeNow{time.Now()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(len(k.Addresses)+1)*reachPatience)
	defer cancel()
	var refused *client.Refusal // who owned it once may have a permission still
	if _, err = c.Owner(ctx, method, what); errors.As(err, &refused) && k.Owner {
		err = nil
	}
	return c, err
}

// Claim makes this machine's user the owner of the site that shows an address, and
// remembers it by that name, "" for the site's own. Whoever owns it already has it
// remembered.
func Claim(ctx context.Context, uri, name, version string) (KnownSite, error) {
	i, err := access.ParseInvitation(strings.TrimSpace(uri))
	if err != nil {
		return KnownSite{}, Mistake{err}
	}
	key, err := ownerKey()
	if err != nil {
		return KnownSite{}, err
	}
	c, err := dialKey(key, i.Site, i.Addresses, rpc.JSON, version)
	if err != nil {
		return KnownSite{}, err
	}
	called, err := prove(ctx, c, key, i)
	var refused *client.Refusal
	if errors.As(err, &refused) { // an answer was lost, another owner added us, or the configuration did
		var ours Access
		if ownersAsk(ctx, c, AccessMethod, nil, &ours) == nil {
			called, err = ours.Name, nil
		}
	}
	if err != nil {
		return KnownSite{}, err
	}
	if name == "" {
		name = called
	}
	k := KnownSite{Name: name, DID: i.Site.String(), Addresses: i.Addresses, Owner: true}
	return k, remember(k)
}

// prove claims a site and returns its name.
func prove(ctx context.Context, c *client.Client, key identity.Key, i access.Invitation) (name string, err error) {
	var challenge Challenge
	if err := ownersAsk(ctx, c, ChallengeMethod, nil, &challenge); err != nil {
		return "", err
	}
	proof := access.Prove(key, i.Site, i.Secret, challenge.Challenge)
	var claimed Claimed
	if err := ownersAsk(ctx, c, ProveMethod, proof, &claimed); err != nil {
		return "", err
	}
	if !proof.Answered(i.Site, i.Secret, claimed.Answer) {
		return "", errors.New("the site did not show that it knows the secret: look whether the address is whole, and whether agentsite owners on the site's machine lists your key")
	}
	return claimed.Name, nil
}

// Accept remembers a site on which this machine's user was granted something, by that
// name, "" for the one that comes with it.
func Accept(text, name string) (KnownSite, error) {
	p, err := access.ParsePass(strings.TrimSpace(text))
	if err != nil {
		return KnownSite{}, Mistake{err}
	}
	key, err := ownerKey()
	if err != nil {
		return KnownSite{}, err
	}
	if p.Grant.Audience() != key.ID() {
		return KnownSite{}, Mistake{fmt.Errorf("this grant is for %v, and you are %v: have it made for you", p.Grant.Audience(), key.ID())}
	}
	if name == "" {
		name = p.Name
	}
	k := KnownSite{Name: name, DID: p.Site.String(), Addresses: p.Addresses, Grant: p.Grant.Bytes()}
	have, err := knownBy(k.DID)
	switch {
	case err != nil:
		return have, err
	case have.Owner:
		return have, Mistake{fmt.Errorf("you own %s already, and may do all there", have.Name)}
	}
	return k, remember(k)
}

// knownBy finds a site by its key; a zero one where it is not known.
func knownBy(did string) (KnownSite, error) {
	all, err := KnownSites()
	i := slices.IndexFunc(all, func(k KnownSite) bool { return k.DID == did })
	if i < 0 {
		return KnownSite{}, err
	}
	return all[i], err
}

// May are the words of what this user was granted, "" for all.
func (k KnownSite) May() (words string, until time.Time) {
	if g, err := access.Open(k.Grant); err == nil {
		return g.Words(), g.Until()
	}
	return "", time.Time{}
}

// ownersAsk calls a method outside MCP and decodes what it answers.
func ownersAsk(ctx context.Context, c *client.Client, method string, params, into any) error {
	text, err := c.Owner(ctx, method, params)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
