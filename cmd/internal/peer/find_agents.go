package peer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/node/identity"
	"agentsite/node/state"
	"agentsite/transport/rpc"
)

const (
	// maxAskedSites bounds the sites that FindAgents asks, and askingSites how many at a time.
	maxAskedSites, askingSites = 64, 6
	// listTimeout bounds one site's answer, with the search for a route to it.
	listTimeout = 12 * time.Second
	// lanFindTime is how long sites on the same network have to answer.
	lanFindTime = 2 * time.Second
	// Limits of the results from one site.
	maxFoundAgents, maxFoundSkills, maxFoundTags, maxFoundText = 16, 16, 16, 200

	skillKind = "skill" // of capabilities, and of public offers
)

// AgentsWanted says which agents FindAgents looks for, and where.
type AgentsWanted struct {
	// Tags are 1 to 8. Sites are found by the first; one skill of an agent has them all.
	Tags    []string
	Realm   *Realm // whose sites are looked up by their announcements; nil for none
	As      string // the user's agent that asks; "" for the user
	Version string // of the program
}

// FoundAgents are the agents of one site, as the site tells the asker. They are data of a site that
// need not be trusted.
type FoundAgents struct {
	Found
	Through []string     `json:"through"` // known, lan and realm: how the site was found
	Agents  []task.Agent `json:"agents"`  // with the skills that were looked for; texts as they came, clipped
	// Err is why the site did not list its agents; nil where it did.
	Err error `json:"-"`
}

// FindAgents looks for agents that the person may ask and that have a skill with all tags. It asks
// the sites that the person knows, and those of the realm that announce the first tag. On the same
// network it asks sites that announce it to everybody or are the person's. It returns the sites
// with such agents or such an announcement, and the known ones that do not answer. Known sites come
// first, then the order is by name. lookup is why the realm was not searched, if it was not.
//
// An unknown site of the public realm is not asked: it would learn the person's key and the wanted
// skills.
func FindAgents(ctx context.Context, w AgentsWanted) (all []FoundAgents, lookup error, err error) {
	if len(w.Tags) == 0 || len(w.Tags) > 8 {
		return nil, nil, state.Mistakef("name 1 to 8 skills, such as irrigation")
	}
	for _, tag := range w.Tags {
		if !task.IsTag(tag) {
			return nil, nil, state.Mistakef("%.40q is not the tag of a skill: use a-z, 0-9 and -, such as irrigation", tag)
		}
	}
	p, err := PersonNamed(w.As)
	if err != nil {
		return nil, nil, err
	}
	known, err := p.Contacts().List()
	if err != nil {
		return nil, nil, err
	}
	key, err := p.Key()
	if err != nil {
		return nil, nil, err
	}
	out, err := userNetwork(key, w.Version)
	if err != nil {
		return nil, nil, err
	}
	defer out.Close()
	f := &agentFinder{AgentsWanted: w, ctx: ctx, person: p, key: key, network: out, sites: make(map[string]*foundSite), slots: make(chan struct{}, askingSites)}
	for _, k := range known {
		f.add(Found{Known: k.Name}, k, "known")
	}
	var looking sync.WaitGroup
	looking.Go(func() { f.findNear() })
	if w.Realm != nil {
		looking.Go(func() { lookup = f.findInRealm(*w.Realm) })
	}
	looking.Wait()
	f.asking.Wait()
	return f.found(), lookup, nil
}

// agentFinder is one search.
type agentFinder struct {
	AgentsWanted
	ctx     context.Context
	person  Person
	key     identity.Key
	network *lazyNetwork
	slots   chan struct{}
	asking  sync.WaitGroup

	mu    sync.Mutex
	sites map[string]*foundSite // by did:key
}

// foundSite is a site that was found, whose agents are asked for once.
type foundSite struct {
	FoundAgents
	contact Contact
}

// findNear finds sites on the same network.
func (f *agentFinder) findNear() {
	_ = Discover(f.ctx, DiscoverOptions{For: lanFindTime, Version: f.Version}, func(c discovery.Change, s Found) {
		s.Yours = s.Yours && f.As == ""
		if c != discovery.Gone && (s.Announces(skillKind, f.Tags[0]) || s.Yours || s.Known != "") {
			f.add(s, Contact{DID: s.DID, Addresses: authorities(s.URLs), Owner: s.Yours}, "lan")
		}
	}) // a machine without a network finds none
}

// findInRealm looks the first tag up in the realm.
func (f *agentFinder) findInRealm(j Realm) error {
	public := j.Name() == discovery.PublicRealm().Name
	return Find(f.ctx, j, skillKind+"/"+f.Tags[0], f.Version, func(s Found) {
		k := Contact{DID: s.DID}
		for _, a := range s.URLs {
			if a[0] == '/' {
				k.Addresses = append(k.Addresses, a)
			}
		}
		if public {
			k.DID = "" // not asked, unless it is known
		}
		f.add(s, k, "realm")
	})
}

// add records a found site, and asks it unless it was asked before. k is the contact to ask by;
// without a key the site is not asked.
func (f *agentFinder) add(s Found, k Contact, through string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	did := cmp.Or(s.DID, k.DID)
	if was := f.sites[did]; was != nil {
		if !slices.Contains(was.Through, through) {
			was.Through = append(was.Through, through)
		}
		if was.Name == "" {
			was.Name, was.URLs, was.Public = s.Name, s.URLs, s.Public
		}
		if was.contact.DID == "" && k.DID != "" {
			was.contact = k
			f.ask(was)
		}
		return
	}
	if len(f.sites) == maxAskedSites && s.Known == "" {
		return
	}
	s.DID = did
	at := &foundSite{FoundAgents{Found: s, Through: []string{through}}, k}
	f.sites[did] = at
	if k.DID != "" {
		f.ask(at)
	}
}

// ask asks a site for its agents in the background.
func (f *agentFinder) ask(s *foundSite) {
	k := s.contact
	f.asking.Go(func() {
		var all []task.Agent
		var err error
		select {
		case f.slots <- struct{}{}:
			all, err = f.list(k)
			<-f.slots
		case <-f.ctx.Done():
			err = f.ctx.Err()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		s.Agents, s.Err = f.matching(all), err
	})
}

// list asks a site for the agents that the person may ask there.
func (f *agentFinder) list(k Contact) ([]task.Agent, error) {
	id, err := identity.Parse(k.DID)
	if err != nil {
		return nil, err
	}
	c, w, err := newSession(f.key, id, func() []string { return k.Addresses }, nil, rpc.JSON, f.network, f.Version)
	if err != nil {
		return nil, err
	}
	defer w.near.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(f.ctx, listTimeout)
	defer cancel()
	if err := f.person.greet(ctx, k, c, listTimeout); err != nil {
		return nil, err
	}
	return c.Tasks().Agents(ctx, agents.Principal{})
}

// matching returns the agents that have a skill with all tags, with those skills, bounded.
func (f *agentFinder) matching(all []task.Agent) (some []task.Agent) {
	for _, a := range all {
		a.Skills = slices.DeleteFunc(slices.Clone(a.Skills), func(s task.Skill) bool {
			return slices.ContainsFunc(f.Tags, func(tag string) bool { return !slices.Contains(s.Tags, tag) })
		})
		if len(a.Skills) == 0 || len(some) == maxFoundAgents {
			continue
		}
		a.Description, a.Skills = device.Clip(a.Description, maxFoundText), a.Skills[:min(len(a.Skills), maxFoundSkills)]
		for i := range a.Skills {
			s := &a.Skills[i]
			s.Tags = slices.DeleteFunc(slices.Clone(s.Tags), func(tag string) bool { return !task.IsTag(tag) })
			s.Tags = s.Tags[:min(len(s.Tags), maxFoundTags)]
			s.Description, s.Input = device.Clip(s.Description, maxFoundText), nil // agents show has it
		}
		some = append(some, a)
	}
	return some
}

// found returns the results, in order.
func (f *agentFinder) found() (all []FoundAgents) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sites {
		announced := slices.Contains(s.Through, "realm") || s.Announces(skillKind, f.Tags[0])
		if len(s.Agents) > 0 || s.Err != nil || announced && s.Known == "" {
			all = append(all, s.FoundAgents)
		}
	}
	rank := func(s FoundAgents) int {
		switch {
		case s.Known != "":
			return 0
		case s.Yours:
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(a, b FoundAgents) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Known, b.Known), cmp.Compare(a.Name, b.Name), cmp.Compare(a.DID, b.DID))
	})
	return all
}
