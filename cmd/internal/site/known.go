package site

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

// Person is somebody who uses sites from this machine: its user, or one of the user's
// agents. Each has a key of their own, and knows sites.
type Person struct{ Folder }

// User is this machine's user, who may own sites.
func User() (Person, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Person{}, fmt.Errorf("no folder for your key: %w; set HOME", err)
	}
	return Person{Folder(filepath.Join(dir, "agentsite", "owner"))}, nil
}

// agent is one of the user's agents, by its name.
func (p Person) agent(name string) (Person, error) {
	if err := device.CheckName(name); err != nil {
		return Person{}, Mistake{fmt.Errorf("an agent needs a name: %w", err)}
	}
	return Person{Folder(filepath.Join(filepath.Dir(string(p.Folder)), agentsFolder, name))}, nil
}

// As is the user for "", and else one of the user's agents, which has to be there.
func As(name string) (Person, error) {
	p, err := User()
	if err != nil || name == "" {
		return p, err
	}
	if p, err = p.agent(name); err != nil {
		return p, err
	}
	if _, err := os.Stat(p.path(keyName)); errors.Is(err, fs.ErrNotExist) {
		return p, Mistake{fmt.Errorf("you have no agent %q: agentsite agents allow makes one", name)}
	}
	return p, nil
}

// KnownSite is a site that somebody claimed or was granted something on. Its key is
// pinned: whoever else answers at its addresses is refused.
type KnownSite struct {
	Name      string   `json:"name"` // by which this user calls it
	DID       string   `json:"did"`
	Addresses []string `json:"addresses"` // host:port, the best first
	Owner     bool     `json:"owner,omitzero"`
	Grant     []byte   `json:"grant,omitzero"` // what its holder may do, where that is not all
}

const (
	knownName    = "sites.json"
	agentsFolder = "agents"

	maxAddresses = 8 // of a site that is known
)

// Sites lists those that the person knows.
func (p Person) Sites() (all []KnownSite, err error) {
	file := p.path(knownName)
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
func (p Person) Known(name string) (KnownSite, error) {
	all, err := p.Sites()
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
func (p Person) remember(k KnownSite) error {
	if err := device.CheckName(k.Name); err != nil {
		return Mistake{fmt.Errorf("a site needs a name here, with --name: %w", err)}
	}
	all, err := p.Sites()
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
	return p.writeKnown(all)
}

// moved remembers where a known site was found. Where it was is kept behind that: it may
// be reached there from elsewhere.
func (p Person) moved(k KnownSite, at []string) {
	for _, a := range k.Addresses {
		if !slices.Contains(at, a) && len(at) < maxAddresses {
			at = append(at, a)
		}
	}
	k.Addresses = at
	if err := p.remember(k); err != nil {
		slog.Warn("where the site is now cannot be remembered", "site", k.Name, "err", err)
	}
}

// Forget forgets a site by its name.
func (p Person) Forget(name string) error {
	if _, err := p.Known(name); err != nil {
		return err
	}
	all, err := p.Sites()
	if err != nil {
		return err
	}
	return p.writeKnown(slices.DeleteFunc(all, func(k KnownSite) bool { return k.Name == name }))
}

func (p Person) writeKnown(all []KnownSite) error {
	text, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(p.Folder), 0o700); err != nil {
		return err
	}
	return writeAtomic(p.path(knownName), append(text, '\n'), 0o600)
}

// unreached is why a site was not asked: no connection to it came about.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// dialKey connects to a site that its key tells, with one of one's own. Where it may be is
// asked for each connection. Where it is at none of these addresses it is looked for, and
// moved is told where it was found; nil for nobody. After fresh a connection that nobody
// uses just then is not used again.
func dialKey(key identity.Key, site identity.ID, where func() []string, moved func(at []string), codec rpc.Codec, version string) (c *client.Client, fresh func(), err error) {
	secured, err := httpcarrier.ClientTLS(key, site)
	if err != nil {
		return nil, nil, err
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := route{site: site, addresses: where(), secured: secured, moved: moved}.dial(ctx, network, address)
		if err != nil {
			return nil, unreached{err}
		}
		return newPaced(conn), nil
	}
	web := &http.Client{
		// No site sends its callers elsewhere, and whoever does may not choose where.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialTLSContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 90 * time.Second,
		},
	}
	carrier := &httpcarrier.Client{URL: "https://" + HostName(site) + "/mcp", Codec: codec, HTTP: web}
	return client.New(carrier, "agentsite", version), web.CloseIdleConnections, nil
}

// KnownCertificate is SiteCertificate of a site that this user knows, from itself.
func KnownCertificate(ctx context.Context, name string) (string, error) {
	p, err := User()
	if err != nil {
		return "", err
	}
	k, err := p.Known(name)
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
	conn, err := route{site: id, addresses: k.Addresses, secured: secured}.dial(ctx, "tcp", "")
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
	p, err := As(t.As)
	if err != nil {
		return nil, err
	}
	k, err := p.Known(t.Site)
	if err != nil {
		return nil, err
	}
	key, err := p.key()
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
	c, _, err := dialKey(key, id, k.addresses, func(at []string) { p.moved(k, at) }, codec, t.Version)
	if err != nil {
		return nil, err
	}
	return c, k.greet(context.Background(), c)
}

func (k KnownSite) addresses() []string { return k.Addresses }

// greet tells a site the time, or shows it what was granted.
func (k KnownSite) greet(ctx context.Context, c *client.Client) error {
	method, what := PresentMethod, any(Signed{k.Grant})
	if k.Owner {
		method, what = TimeMethod, TimeNow{time.Now()}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*reachPatience) // and to be answered
	defer cancel()
	_, err := c.Owner(ctx, method, what)
	var refused *client.Refusal
	if errors.As(err, &refused) { // what is asked next says why
		return nil
	}
	return err
}

// Claim makes the person the owner of the site that shows an address, and remembers it by
// that name, "" for the site's own. The code is that of MadeRecovery, "" where the person
// owned the site already; then it is remembered all the same.
func (p Person) Claim(ctx context.Context, uri, name, version string) (k KnownSite, code string, err error) {
	i, err := access.ParseInvitation(strings.TrimSpace(uri))
	if err != nil {
		return k, "", Mistake{err}
	}
	key, err := p.key()
	if err != nil {
		return k, "", err
	}
	c, _, err := dialKey(key, i.Site, func() []string { return i.Addresses }, nil, rpc.JSON, version)
	if err != nil {
		return k, "", err
	}
	called, err := prove(ctx, c, key, i)
	var refused *client.Refusal
	owned := false
	if errors.As(err, &refused) { // an answer was lost, another owner added us, or the configuration did
		var ours Access
		if owned = ownersAsk(ctx, c, AccessMethod, nil, &ours) == nil; owned {
			called, err = ours.Name, nil
		}
	}
	if err != nil {
		return k, "", err
	}
	if name == "" {
		name = called
	}
	k = KnownSite{Name: name, DID: i.Site.String(), Addresses: i.Addresses, Owner: true}
	if _, err := c.Owner(ctx, TimeMethod, TimeNow{time.Now()}); err != nil {
		return k, "", err
	}
	if err := p.remember(k); err != nil || owned {
		return k, "", err
	}
	var made MadeRecovery
	err = ownersAsk(ctx, c, RecoveryMethod, nil, &made)
	return k, made.Code, err
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

// Accept remembers a site on which the person was granted something, by that name, "" for
// the one that comes with it.
func (p Person) Accept(text, name string) (KnownSite, error) {
	pass, err := access.ParsePass(strings.TrimSpace(text))
	if err != nil {
		return KnownSite{}, Mistake{err}
	}
	key, err := p.key()
	if err != nil {
		return KnownSite{}, err
	}
	if pass.Grant.Audience() != key.ID() {
		return KnownSite{}, Mistake{fmt.Errorf("this grant is for %v, and you are %v: have it made for you", pass.Grant.Audience(), key.ID())}
	}
	if name == "" {
		name = pass.Name
	}
	k := KnownSite{Name: name, DID: pass.Site.String(), Addresses: pass.Addresses, Grant: pass.Grant.Bytes()}
	have, err := p.knownBy(k.DID)
	switch {
	case err != nil:
		return have, err
	case have.Owner:
		return have, Mistake{fmt.Errorf("you own %s already, and may do all there", have.Name)}
	}
	return k, p.remember(k)
}

// knownBy finds a site by its key; a zero one where it is not known.
func (p Person) knownBy(did string) (KnownSite, error) {
	all, err := p.Sites()
	i := slices.IndexFunc(all, func(k KnownSite) bool { return k.DID == did })
	if i < 0 {
		return KnownSite{}, err
	}
	return all[i], err
}

// Owned notes that the person has become the owner of a known site; "" is none.
func (p Person) Owned(name string) error {
	if name == "" {
		return nil
	}
	k, err := p.Known(name)
	if err != nil {
		return err
	}
	k.Owner, k.Grant = true, nil
	return p.remember(k)
}

// May are the words of what was granted, "" for all.
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
