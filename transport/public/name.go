package public

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/node/identity"
	"agentsite/node/quota"
	"agentsite/transport/p2p"

	"github.com/go-json-experiment/json"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// nameProtocol gives a site its name at a relay. The site sends its owner's own name, or nothing, and the
// relay answers with an Answer. The relay serves both names while the site stays connected.
const nameProtocol protocol.ID = "/agentsite/name/1"

const (
	maxName     = 253
	maxAnswer   = 1 << 10
	askTimeout  = 10 * time.Second
	lookTimeout = 5 * time.Second // for the CNAME of an own name
)

// Answer tells a site its names.
type Answer struct {
	Name string `json:"name,omitzero"` // under the relay's zone; "" where it gives none
	Own  bool   `json:"own,omitzero"`  // the relay serves the owner's own name, too
	Why  string `json:"why,omitzero"`  // why it does not serve a name that was asked for
}

// Label returns the first label of a site's name in every zone: 128 bits of its key's hash. The name follows
// from the key, so that nobody registers one and nobody can take another's.
func Label(site peer.ID) string {
	hash := sha256.Sum256([]byte(site))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:16]))
}

var nameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
})

// IsName reports whether a text is a name in the DNS, in lower case, without a dot at its end.
func IsName(name string) bool { return len(name) <= maxName && nameForm().MatchString(name) }

// names are the public names that a relay serves. It is safe for concurrent use.
type names struct {
	host    host.Host
	zone    string
	allow   func(identity.ID) bool
	resolve func(ctx context.Context, name string) (canonical string, err error)

	asking quota.Quota
	often  quota.RateLimiter

	mu    sync.Mutex
	sites map[string]peer.ID // by name
}

func newNames(h host.Host, o RelayOptions) *names {
	return &names{
		host: h, zone: o.Zone, allow: o.Allow, resolve: o.Resolve,
		often: quota.RateLimiter{Rate: quota.Rate{PerSecond: 0.2, Burst: 8}}, sites: make(map[string]peer.ID),
	}
}

// serve gives names until stop is called.
func (n *names) serve() (stop func()) {
	watch := &network.NotifyBundle{DisconnectedF: func(net network.Network, c network.Conn) {
		if net.Connectedness(c.RemotePeer()) != network.Connected {
			n.remove(c.RemotePeer())
		}
	}}
	n.host.Network().Notify(watch)
	n.host.SetStreamHandler(nameProtocol, n.answer)
	return func() {
		n.host.RemoveStreamHandler(nameProtocol)
		n.host.Network().StopNotify(watch)
	}
}

// site returns the site of a name, while the relay's owner allows it.
func (n *names) site(name string) (site peer.ID, ok bool) {
	n.mu.Lock()
	site, ok = n.sites[strings.ToLower(name)]
	n.mu.Unlock()
	return site, ok && n.allowed(site)
}

func (n *names) allowed(site peer.ID) bool {
	id, err := identity.Parse(site.String())
	return err == nil && (n.allow == nil || n.allow(id))
}

// asker is the group of the streams of one site that asks.
type asker struct{ site peer.ID }

// answer serves a stream of nameProtocol.
func (n *names) answer(s network.Stream) {
	site := s.Conn().RemotePeer()
	turn := quota.Limit{Group: asker{site}, Most: 1}
	if s.Conn().Stat().Limited || !n.often.Allow(site) || !n.asking.Take(turn) {
		s.Reset()
		return
	}
	defer n.asking.Release(turn)
	s.SetDeadline(time.Now().Add(askTimeout))
	own, err := io.ReadAll(io.LimitReader(s, maxName+1))
	if err == nil {
		err = json.MarshalWrite(s, n.give(site, string(own)))
	}
	if err != nil {
		s.Reset()
		return
	}
	s.Close() // and no Reset, which drops what is on its way
}

// give registers the names of a connected site instead of those of before.
func (n *names) give(site peer.ID, own string) Answer {
	if !n.allowed(site) {
		n.remove(site)
		return Answer{Why: "the relay's owner has not listed this site's key, " + site.String() + " (agentsite relay --allow)"}
	}
	a := Answer{Name: Label(site) + "." + n.zone}
	served := []string{a.Name}
	if own != "" {
		if err := n.check(own, a.Name); err == nil || n.keeps(site, own, err) {
			a.Own, served = true, append(served, own)
		} else {
			a.Why = err.Error()
		}
	}
	n.set(site, served)
	if n.host.Network().Connectedness(site) != network.Connected { // it left meanwhile
		n.remove(site)
	}
	return a
}

// check looks whether the DNS has an owner's own name point to the site's name. Nobody but a site has the relay
// look a name up.
func (n *names) check(own, target string) error {
	if !IsName(own) || own == n.zone || strings.HasSuffix(own, "."+n.zone) {
		return fmt.Errorf("%.80q is not a name outside the relay's zone", own)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	canonical, err := n.resolve(ctx, own+".") // as a whole name, without the machine's search list
	if isSilent(err) {
		return fmt.Errorf("the relay's DNS does not answer for %s (%w), which has to be a CNAME of %s", own, err, target)
	}
	if err != nil {
		return fmt.Errorf("the DNS does not know %s: make it a CNAME of %s", own, target)
	}
	if got := strings.ToLower(strings.TrimSuffix(canonical, ".")); got != target {
		return fmt.Errorf("%s points to %.80s: make it a CNAME of %s", own, got, target)
	}
	return nil
}

// isSilent reports whether an error says that the DNS did not answer, and not that it knows no such name.
func isSilent(err error) bool {
	failed := (*net.DNSError)(nil)
	return errors.As(err, &failed) && !failed.IsNotFound
}

// keeps reports whether a site keeps an own name that it has, as the DNS does not answer about it now.
func (n *names) keeps(site peer.ID, own string, err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return isSilent(err) && n.sites[own] == site
}

// set has the names of a site be exactly those. A name's CNAME has one target, so that no other site has it;
// where it did before, it has moved.
func (n *names) set(site peer.ID, served []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delete(site)
	for _, name := range served {
		n.sites[name] = site
	}
	n.host.ConnManager().Protect(site, p2p.PublicNameTag)
}

func (n *names) remove(site peer.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delete(site)
	n.host.ConnManager().Unprotect(site, p2p.PublicNameTag)
}

// delete is called with mu held.
func (n *names) delete(site peer.ID) {
	for name, of := range n.sites {
		if of == site {
			delete(n.sites, name)
		}
	}
}

// ask asks a relay for the site's names, on a connection that is there. A name that does not follow from the site's
// key is an error.
func ask(ctx context.Context, h host.Host, relay peer.ID, own string) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "names are asked of connected relays"), askTimeout)
	defer cancel()
	s, err := h.NewStream(ctx, relay, nameProtocol)
	if err != nil {
		return a, err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })() // also after askTimeout
	if _, err := io.WriteString(s, own); err != nil {
		return a, err
	}
	if err := s.CloseWrite(); err != nil {
		return a, err
	}
	text, err := io.ReadAll(io.LimitReader(s, maxAnswer))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err == nil && a.Name != "" && (!IsName(a.Name) || !strings.HasPrefix(a.Name, Label(h.ID())+".")) {
		return Answer{}, errors.New("the relay gives a name that is not of this site's key")
	}
	return a, err
}

// Asker keeps a site's names at its relays. The fields are set before Run.
type Asker struct {
	Host   host.Host
	Relays []peer.ID
	Own    string // the owner's own name, "" for none
	// Heard is called after each answer of a relay, with an error while it gives none.
	Heard func(relay peer.ID, a Answer, err error)
}

// A relay looks at an own name again at every question, and forgets it when the connection ends.
const (
	askAgain = 30 * time.Minute
	askFirst = 2 * time.Second // after a failure, doubled up to askMost
	askMost  = 2 * time.Minute
)

// Run asks each relay whenever it is connected, until ctx ends.
func (k *Asker) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, relay := range k.Relays {
		all.Go(func() { k.keep(ctx, relay) })
	}
}

func (k *Asker) keep(ctx context.Context, relay peer.ID) {
	changed := make(chan struct{}, 1)
	notice := func(_ network.Network, c network.Conn) {
		if c.RemotePeer() == relay {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	watch := &network.NotifyBundle{ConnectedF: notice, DisconnectedF: notice}
	k.Host.Network().Notify(watch)
	defer k.Host.Network().StopNotify(watch)
	pause := askFirst
	for ctx.Err() == nil {
		a, err := ask(ctx, k.Host, relay, k.Own)
		k.Heard(relay, a, err)
		wait := askAgain
		if err != nil || a.Name == "" || k.Own != "" && !a.Own {
			wait = pause
			pause = min(2*pause, askMost)
		} else {
			pause = askFirst
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-again.C:
		case <-changed:
			pause = askFirst
		}
		again.Stop()
	}
}

// IDs returns the peer IDs of relays.
func IDs(relays []peer.AddrInfo) (all []peer.ID) {
	for _, r := range relays {
		if !slices.Contains(all, r.ID) {
			all = append(all, r.ID)
		}
	}
	return all
}
