package site

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	httpcarrier "agentsite/transport/http"
	"agentsite/transport/mcp/client"
	"agentsite/transport/owner"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Person is somebody who uses sites from this machine: its user, or one of the user's
// agents. Each has a key of their own, and knows sites.
type Person struct{ state.Folder }

// User is this machine's user, who may own sites.
func User() (Person, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return Person{}, fmt.Errorf("no folder for your key: %w; set HOME", err)
	}
	return Person{state.Folder(filepath.Join(dir, "agentsite", "owner"))}, nil
}

// agent is one of the user's agents, by its name.
func (p Person) agent(name string) (Person, error) {
	if err := device.CheckName(name); err != nil {
		return Person{}, state.Mistakef("an agent needs a name: %w", err)
	}
	return Person{state.Folder(filepath.Join(filepath.Dir(string(p.Folder)), agentsFolder, name))}, nil
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
	if _, err := os.Stat(p.Path(state.KeyFile)); errors.Is(err, fs.ErrNotExist) {
		return p, state.Mistakef("you have no agent %q: agentsite agents allow makes one", name)
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

	// changesName is locked by whoever changes the files beside it, for some milliseconds;
	// changePatience is how long others wait for that, and learnPatience a call, which may
	// be a stop, that has learned where its site is.
	changesName    = "changes.lock"
	changePatience = 10 * time.Second
	learnPatience  = time.Second
)

// Sites lists those that the person knows.
func (p Person) Sites() (all []KnownSite, err error) {
	file := p.Path(knownName)
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
	return named(all, name)
}

func named(all []KnownSite, name string) (KnownSite, error) {
	i := slices.IndexFunc(all, func(k KnownSite) bool { return k.Name == name })
	if i < 0 {
		return KnownSite{}, state.Mistakef("you know no site %q: agentsite sites lists those that you claimed or were granted", name)
	}
	return all[i], nil
}

// remember keeps a site, in the place of what was known of it before. Another's name is
// never taken.
func (p Person) remember(k KnownSite) error {
	return p.changeKnown(func(all []KnownSite) ([]KnownSite, error) { return with(all, k) })
}

// with is all with k in the place of what was known of that site.
func with(all []KnownSite, k KnownSite) ([]KnownSite, error) {
	if err := unused(all, k.Name, k.DID); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(have KnownSite) bool { return have.DID == k.DID })
	if i < 0 {
		return append(all, k), nil
	}
	all[i] = k
	return all, nil
}

// moved remembers where a known site was found. Where it was is kept behind that: it may
// be reached there from elsewhere.
func (p Person) moved(did string, at []string) {
	err := p.relocate(did, func(near, far []string) []string {
		at := slices.Clone(at)
		for _, a := range near {
			if !slices.Contains(at, a) && len(at) < maxNear {
				at = append(at, a)
			}
		}
		return append(at, far...)
	})
	if err != nil {
		slog.Warn("where the site is now cannot be remembered", "site", did, "err", err)
	}
}

// learned remembers where in the world a site says that it may be reached.
func (p Person) learned(did string, at []string) {
	_, far := sorted(ownerclient.Addresses(at))
	far = far[:min(len(far), maxFar)]
	if len(far) == 0 {
		return
	}
	if err := p.relocate(did, func(near, _ []string) []string { return append(near, far...) }); err != nil {
		slog.Warn("where the site may be reached cannot be remembered", "site", did, "err", err)
	}
}

// relocate changes the addresses of a site that is still known, and nothing else of it: who
// calls it read the rest when the call began. It waits for nobody where they are the same.
func (p Person) relocate(did string, to func(near, far []string) []string) error {
	change := func(all []KnownSite) ([]KnownSite, error) {
		i := slices.IndexFunc(all, func(k KnownSite) bool { return k.DID == did })
		if i < 0 {
			return nil, nil
		}
		at := to(sorted(all[i].Addresses))
		if slices.Equal(at, all[i].Addresses) {
			return nil, nil
		}
		all[i].Addresses = at
		return all, nil
	}
	if all, err := p.Sites(); err == nil {
		if all, _ = change(all); all == nil {
			return nil
		}
	}
	return p.exclusive(learnPatience, func() error { return p.rewriteKnown(change) })
}

// Forget forgets a site by its name.
func (p Person) Forget(name string) error {
	return p.changeKnown(func(all []KnownSite) ([]KnownSite, error) {
		if _, err := named(all, name); err != nil {
			return nil, err
		}
		return slices.DeleteFunc(all, func(k KnownSite) bool { return k.Name == name }), nil
	})
}

// changeKnown has what is known now changed, and lets nobody else change it meanwhile; nil
// leaves it as it is.
func (p Person) changeKnown(change func(all []KnownSite) ([]KnownSite, error)) error {
	return p.exclusive(changePatience, func() error { return p.rewriteKnown(change) })
}

// rewriteKnown is changeKnown within exclusive.
func (p Person) rewriteKnown(change func(all []KnownSite) ([]KnownSite, error)) error {
	all, err := p.Sites()
	if err == nil {
		all, err = change(all)
	}
	if err != nil || all == nil {
		return err
	}
	return p.write(knownName, all)
}

// exclusive runs what reads and writes the person's files while no other process, and nothing
// else in this one, does. It waits for them, for as long as patience at most.
func (p Person) exclusive(patience time.Duration, do func() error) error {
	if err := os.MkdirAll(string(p.Folder), 0o700); err != nil {
		return err
	}
	lock, err := p.OpenLockFile(changesName)
	if err != nil {
		return err
	}
	defer lock.Close()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if err = state.TryLock(lock); err == nil {
			return do()
		}
		if time.Since(begun) >= patience {
			return fmt.Errorf("%s is held by another process: %w", lock.Name(), err)
		}
	}
}

// write is for within exclusive.
func (p Person) write(name string, what any) error {
	text, err := json.Marshal(what, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return state.WriteAtomic(p.Path(name), append(text, '\n'), 0o600)
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
	secured, err := httpcarrier.ClientTLS(identity.New(), id) // whoever asks is shown it
	if err != nil {
		return "", err
	}
	near, _ := sorted(k.Addresses)
	ctx, cancel := context.WithTimeout(ctx, t.wait())
	defer cancel()
	conn, err := route{site: id, addresses: near, secured: secured}.dial(ctx, "tcp", "")
	if err != nil {
		return "", err
	}
	defer conn.Close()
	shown := conn.(*tls.Conn).ConnectionState().PeerCertificates
	authority := shown[len(shown)-1]
	if !httpcarrier.IsAuthority(authority, id) {
		return "", fmt.Errorf("%s shows no certificate of its own: run agentsite identity --certificate on its machine", t.Site)
	}
	return certificateText(authority.Raw), nil
}

// dialKnown connects to a site that this user knows, or that only its key names. An owner
// tells it the time, which a board without a clock has from nobody else; others show what
// they were granted, which the site may not have been told of. Close what it returns.
func dialKnown(t Target) (*Connection, *ways, error) {
	p, err := As(t.As)
	if err != nil {
		return nil, nil, err
	}
	k, err := p.named(t.Site, t.Peer)
	if t.Peer == "" {
		k, err = p.find(context.Background(), t.Site, t.Version, t.Tell)
	}
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
	moved := func(at []string) { p.moved(k.DID, at) }
	if k.Name == "" { // nobody remembers it
		moved = nil
	}
	c, w, err := dialKey(key, id, func() []string { return k.Addresses }, moved, codec, out, t.Version)
	if err != nil {
		return nil, nil, err
	}
	w.patience, w.again, w.tell = t.wait(), t.Wait > 0, t.Tell
	if err := p.greet(context.Background(), k, c, w.patience); err != nil {
		out.Close()
		return nil, nil, err
	}
	return connected(c, out, id, k.Name), w, nil
}

// named is a site that the person knows by its name or by its key, or one of which only
// the key is known.
func (p Person) named(name, peer string) (KnownSite, error) {
	id, err := identity.Parse(peer)
	if err != nil && name == "" {
		return KnownSite{}, state.Mistake{Err: err}
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
func (p Person) greet(ctx context.Context, k KnownSite, c ownerclient.Caller, patience time.Duration) error {
	if !k.Owner && k.Grant == nil { // there is nothing to show
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience+answerPatience)
	defer cancel()
	site := ownerclient.New(c, identity.ID{}, "")
	var reached owner.Reached
	var err error
	if k.Owner {
		reached, err = site.SetTime(ctx, time.Now(), false)
	} else {
		reached, err = site.Present(ctx, k.Grant)
	}
	var refused *client.Refusal
	switch {
	case errors.As(err, &refused): // what is asked next says why
		return nil
	case err == nil && k.Name != "":
		p.learned(k.DID, reached.At)
	}
	return err
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
	return p.changeKnown(func(all []KnownSite) ([]KnownSite, error) {
		k, err := named(all, name)
		if err != nil {
			return nil, err
		}
		k.Owner, k.Grant = true, nil
		return with(all, k)
	})
}

// May are the words of what was granted, "" for all.
func (k KnownSite) May() (words string, until time.Time) {
	if g, err := access.Open(k.Grant); err == nil {
		return g.Words(), g.Until()
	}
	return "", time.Time{}
}
