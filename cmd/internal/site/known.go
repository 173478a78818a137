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

	// Of a site that is known: on networks, and in the world.
	maxNear, maxFar = 8, 6
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
	near, far := sorted(k.Addresses)
	for _, a := range near {
		if !slices.Contains(at, a) && len(at) < maxNear {
			at = append(at, a)
		}
	}
	k.Addresses = append(at, far...)
	if err := p.remember(k); err != nil {
		slog.Warn("where the site is now cannot be remembered", "site", k.Name, "err", err)
	}
}

// learned remembers where in the world a site says that it may be reached.
func (p Person) learned(k KnownSite, at []string) {
	near, was := sorted(k.Addresses)
	_, far := sorted(at)
	far = far[:min(len(far), maxFar)]
	if len(far) == 0 || slices.Equal(far, was) {
		return
	}
	k.Addresses = append(near, far...)
	if err := p.remember(k); err != nil {
		slog.Warn("where the site may be reached cannot be remembered", "site", k.Name, "err", err)
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

// dialKey calls a site that its key tells, with one of one's own. Where it may be is asked
// each time that it is looked for, on the same network and, where out is not nil, anywhere
// else; moved is told where on the network it was found, nil for nobody.
func dialKey(key identity.Key, site identity.ID, where func() []string, moved func(at []string), codec rpc.Codec, out *outside, version string) (*client.Client, *ways, error) {
	secured, err := httpcarrier.ClientTLS(key, site)
	if err != nil {
		return nil, nil, err
	}
	w := newWays(site, where, codec, func(ctx context.Context) (net.Conn, error) {
		near, _ := sorted(where())
		return route{site: site, addresses: near, secured: secured, moved: moved}.dial(ctx, "tcp", "")
	}, out)
	return client.New(w, "agentsite", version), w, nil
}

// outsideOf is the part in the global network of whoever has that key, by the realms that
// this machine's user is in.
func outsideOf(key identity.Key, version string) (*outside, error) {
	user, err := User()
	if err != nil {
		return nil, err
	}
	realms, err := user.Realms()
	return &outside{key: key, realms: realms, version: version}, err
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
	near, _ := sorted(k.Addresses)
	conn, err := route{site: id, addresses: near, secured: secured}.dial(ctx, "tcp", "")
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

// dialKnown connects to a site that this user knows, or that only its key names. An owner
// tells it the time, which a board without a clock has from nobody else; others show what
// they were granted, which the site may not have been told of. Close what it returns.
func dialKnown(t Target) (*client.Client, *reaching, error) {
	p, err := As(t.As)
	if err != nil {
		return nil, nil, err
	}
	k, err := p.named(t.Site, t.Peer)
	if err != nil {
		return nil, nil, err
	}
	key, err := p.key()
	if err != nil {
		return nil, nil, err
	}
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, nil, err
	}
	out, err := outsideOf(key, t.Version)
	if err != nil {
		return nil, nil, err
	}
	codec := rpc.JSON
	if t.CBOR {
		codec = rpc.CBOR
	}
	moved := func(at []string) { p.moved(k, at) }
	if k.Name == "" { // nobody remembers it
		moved = nil
	}
	c, w, err := dialKey(key, id, func() []string { return k.Addresses }, moved, codec, out, t.Version)
	if err != nil {
		return nil, nil, err
	}
	r := &reaching{out, w}
	if err := p.greet(context.Background(), k, c); err != nil {
		r.Close()
		return nil, nil, err
	}
	return c, r, nil
}

// reaching is how a site is reached.
type reaching struct {
	*outside
	ways *ways
}

// named is a site that the person knows by its name or by its key, or one of which only
// the key is known.
func (p Person) named(name, peer string) (KnownSite, error) {
	id, err := identity.Parse(peer)
	if err != nil && name == "" {
		return KnownSite{}, Mistake{err}
	}
	if err != nil || peer == "" {
		return p.Known(name)
	}
	k, err := p.knownBy(id.String())
	k.DID = id.String()
	return k, err
}

// Called is by which name the user, or an agent of the user's, knows the site of a key;
// "" for none.
func Called(agent, peer string) (string, error) {
	p, err := As(agent)
	if err != nil {
		return "", err
	}
	k, err := p.named("", peer)
	return k.Name, err
}

// greet tells a site the time, or shows it what was granted, and remembers where it says
// that it may be reached.
func (p Person) greet(ctx context.Context, k KnownSite, c *client.Client) error {
	method, what := PresentMethod, any(Signed{k.Grant})
	switch {
	case k.Owner:
		method, what = TimeMethod, TimeNow{time.Now()}
	case k.Grant == nil: // there is nothing to show
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachPatience+farPatience) // and to be answered
	defer cancel()
	var reached Reached
	err := ownersAsk(ctx, c, method, what, &reached)
	var refused *client.Refusal
	switch {
	case errors.As(err, &refused): // what is asked next says why
		return nil
	case err == nil && k.Name != "":
		p.learned(k, reached.At)
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
	out, err := outsideOf(key, version)
	if err != nil {
		return k, "", err
	}
	defer out.Close()
	c, _, err := dialKey(key, i.Site, func() []string { return i.Addresses }, nil, rpc.JSON, out, version)
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
	if err := p.greet(ctx, KnownSite{Owner: true}, c); err != nil {
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
