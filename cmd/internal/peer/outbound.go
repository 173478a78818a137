package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/principal"
	"agentsite/agents/remote"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"
	"agentsite/transport/web"
)

// aliveEvery is the interval of keep-alive requests to a site on a relayed or direct connection,
// and their timeout. A lost connection is detected within twice that, and ten seconds later if a
// call hangs at its end.
const aliveEvery = 9 * time.Second

// nearEvery is the same for a site on this network, where the kernel finds a lost connection, and
// nobody else a site that hangs.
const nearEvery = 30 * time.Second

// maxNetworks bounds how many agents take part in the global network: each does so by itself, with
// its own key, for some MB. The others reach sites in the same network only.
const maxNetworks = 4

// Outbound calls other sites for a site's agents. Each agent has its own key, to which the site
// delegates a part of its own grant. It is safe for concurrent use. Close it after use.
type Outbound struct {
	person  Person // the site, with its grants as contacts
	key     identity.Key
	realms  []Realm
	version string

	mu       sync.Mutex
	networks map[string]*lazyNetwork // by agent
	leaving  sync.WaitGroup
}

// NewOutbound makes one for the site of a data folder. realms are where other sites are looked up
// that are not in the same network.
func NewOutbound(f state.Folder, key identity.Key, realms []Realm, version string) *Outbound {
	return &Outbound{person: Person{f}, key: key, realms: realms, version: version, networks: make(map[string]*lazyNetwork)}
}

// CheckPeer refuses a malformed key of a site, and a malformed address.
func CheckPeer(peer string, addresses []string) error {
	if _, err := identity.Parse(peer); err != nil {
		return err
	}
	for _, a := range addresses {
		if len(ownerclient.Addresses([]string{a})) == 0 {
			return fmt.Errorf("%.60q is no address; write host:port or a multiaddr", a)
		}
	}
	return nil
}

// Accept stores a grant of another site for this one, in place of an older one.
func (o *Outbound) Accept(text string) (Contact, error) {
	pass, err := access.ParseGrantLink(strings.TrimSpace(text))
	if err != nil {
		return Contact{}, state.Mistake{Err: err}
	}
	return o.person.accept(pass, "", func(Contact) error { return nil })
}

// Keep leaves the networks of the agents without a link, which takes a while: it does not block.
// Others can join then.
func (o *Outbound) Keep(all []agent.Link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, n := range o.networks {
		if !slices.ContainsFunc(all, func(l agent.Link) bool { return l.Agent == name }) {
			delete(o.networks, name)
			o.leaving.Go(func() { n.Close() })
		}
	}
}

// Close leaves the networks that were joined.
func (o *Outbound) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.leaving.Wait()
	var errs []error
	for _, n := range o.networks {
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

// network returns the global network for an agent's key, which is joined when a site is not on the
// same network. It returns nil for an agent beyond maxNetworks.
func (o *Outbound) network(agent string, key identity.Key) *lazyNetwork {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.networks[agent]
	if n == nil && len(o.networks) < maxNetworks {
		n = &lazyNetwork{key: key, realms: o.realms, version: o.version}
		o.networks[agent] = n
	}
	return n
}

// Open makes the site of a link, and returns it with the ID of the agent's key.
func (o *Outbound) Open(l agent.Link) (remote.Site, string, error) {
	id, err := identity.Parse(l.Peer)
	if err != nil {
		return nil, "", err
	}
	if id == o.key.ID() {
		return nil, "", errors.New("it is this site itself: name its points without the site's name")
	}
	s := &outboundSite{out: o, link: l, site: id, key: o.key.Derive(l.Agent)}
	secured, err := web.ClientTLS(s.key, id)
	if err != nil {
		return nil, "", err
	}
	moved := func(at []string) { o.person.Contacts().updateNear(id.String(), at) }
	s.router = newRouter(id, s.addresses, rpc.CBOR, func(ctx context.Context) (net.Conn, error) {
		near, _ := splitAddresses(s.addresses())
		return lanDialer{site: id, addresses: near, secured: secured, moved: moved}.dial(ctx, "tcp", "")
	}, o.network(l.Agent, s.key))
	s.Client = client.NewForSite(s.router, o.version, o.key.ID().String())
	return s, s.key.ID().String(), nil
}

// outboundSite is another site as one agent of a site has it.
type outboundSite struct {
	*client.Client
	out    *Outbound
	link   agent.Link
	site   identity.ID
	key    identity.Key // the agent's
	router *router
}

// addresses are those of the configuration, and those of the contact.
func (s *outboundSite) addresses() []string {
	all := slices.Clone(s.link.Addresses)
	if k, err := s.out.person.Contacts().byKey(s.site.String()); err == nil {
		for _, a := range k.Addresses {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// grant returns the site's grant, passed on to the agent: no more than all agents may ask there,
// and than this one may.
func (s *outboundSite) grant() (*access.Grant, error) {
	k, err := s.out.person.Contacts().byKey(s.site.String())
	if err != nil {
		return nil, err
	}
	if k.Grant == nil {
		return nil, state.Mistakef("this site has no grant of that one: have its owner run agentsite grant --to-site %v there, and give its text to agentsite sites connect here", s.out.key.ID())
	}
	g, err := access.ParseGrant(k.Grant)
	if err != nil {
		return nil, err
	}
	_, name := principal.Parse(s.link.Agent).Agent()
	for _, step := range []struct {
		to   identity.ID
		may  string
		name string
	}{{s.out.key.ID(), s.link.Most, ""}, {s.key.ID(), s.link.May, name}} {
		may, err := access.ParsePermissions(step.may)
		if err != nil {
			return nil, err
		}
		if g, err = g.Attenuate(s.out.key, access.Block{Audience: step.to, Node: s.site, Permissions: may, Name: step.name}); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Watch begins on a new connection, on which the agent presents its grant first.
func (s *outboundSite) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	g, err := s.grant()
	if err != nil {
		return err
	}
	s.router.invalidateRoute()
	defer s.router.invalidateRoute() // a site allows few streams, and this may be the last watch
	if err := s.present(ctx, g); err != nil {
		return err
	}
	watching, end := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer end(nil)
	every := aliveEvery
	if s.router.cachedRoute() == rpc.Caller(s.router.near) {
		every = nearEvery
	}
	asking.Go(func() { end(keepAsking(watching, every, s.Client.Alive)) })
	err = s.Client.Watch(watching, p, r, emit)
	if ctx.Err() == nil && watching.Err() != nil {
		return context.Cause(watching)
	}
	return err
}

// keepAsking returns when a site does not answer any more: libp2p finds that after a minute. A
// refusal is an answer.
func keepAsking(ctx context.Context, every time.Duration, alive func(context.Context) error) error {
	for {
		if err := device.Sleep(ctx, every); err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, aliveEvery)
		err := alive(asking)
		cancel()
		var refused *client.RequestError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
	}
}

func (s *outboundSite) present(ctx context.Context, g *access.Grant) error {
	ctx, cancel := context.WithTimeout(ctx, internetTimeout+firstAnswerTimeout)
	defer cancel()
	reached, err := ownerclient.New(s.Client, identity.ID{}, "").Present(ctx, g.Bytes())
	if err == nil {
		s.out.person.Contacts().updateFar(s.site.String(), reached.At)
	}
	return err
}
