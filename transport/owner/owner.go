package owner

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/discovery"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/hosted"
	"agentsite/node/identity"
	"agentsite/transport/rpc"
)

// Site holds the objects that the methods act on. Every field but Find is required.
type Site struct {
	Node    *node.Node
	Access  *access.Store
	Outputs outputs
	Reload  func(context.Context) error // fails with a *config.Error, or a device.Fault that is Invalid or Offline

	Key           identity.Key
	Name          string
	Configuration string          // the absolute path of its file; "" for the demonstration
	Addresses     func() []string // where it may be reached now
	Routes        func() Routes

	// Import adds past readings of a measurement, and returns how many it took; WouldImport returns how
	// many it would take. They fail with a device.Fault that is Invalid where the caller can mend it.
	Import, WouldImport func(point string, readings []device.Summary) (int, error)

	Hosted interface { // the agents that the site hosts
		List(ctx context.Context) []hosted.Agent
		Pause(name string) error
		Resume(name string) error
		Offered(ctx context.Context, name string) (agent.Offer, error)
		AcceptOffer(ctx context.Context, name, digest string) error
	}

	Bundles bundles // the agents that came to the site as bundles

	// Connect stores a grant of another site. It fails with a device.Fault that is Invalid where the
	// caller can mend it.
	Connect func(grant string) (agent.Connected, error)

	// Try tries rules over the past, as trials.Runner does. It fails with a device.Fault that is
	// Invalid where the caller can mend it.
	Try func(context.Context, agents.Principal, trial.Request) (trial.Result, error)

	// Find returns the records of the realm's sites that have a capability; "" lists those that
	// are known already. It blocks until all were asked or ctx ends; nil without a realm.
	Find func(ctx context.Context, capability string) ([]*discovery.Signed, error)
}

// outputs has the owner's methods on the outputs. Both may block for the guard.
type outputs interface {
	Reset(ctx context.Context) error
	TakeOver(ctx context.Context, holder, output string) error
}

// Methods returns the owner's methods and those for callers with a proven key, but for the
// claim's. Each decides by the evidence of its own call.
func (s *Site) Methods() map[string]rpc.Method {
	all := make(methods)
	s.addOutputs(all)
	s.addApprovals(all)
	s.addGrants(all)
	s.addOwners(all)
	s.addAbout(all)
	s.addHosted(all)
	s.addBundles(all)
	return all
}

type methods map[string]rpc.Method

// forOwners adds a method that only an owner's evidence opens. command is the sub-command
// that everybody else is told to run as an owner.
func forOwners[P, R any](s *Site, all methods, name Method[P, R], command string, do func(ctx context.Context, who agents.Principal, params P) (R, error)) {
	all[string(name)] = func(ctx context.Context, c *rpc.Call) (any, error) {
		who, err := s.Node.Who(node.Evidence(c.Evidence))
		if err != nil || !who.Owner {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "this is an owner's: run agentsite %s on the site's own machine, or with --site where you own it", command)
		}
		params, err := decode[P](c)
		if err != nil {
			return nil, err
		}
		return do(ctx, who, params)
	}
}

// forKeys adds a method for every caller that proved a key to the carrier.
func forKeys[P, R any](all methods, name Method[P, R], do func(ctx context.Context, who identity.ID, params P) (R, error)) {
	all[string(name)] = func(ctx context.Context, c *rpc.Call) (any, error) {
		if c.Evidence.Peer == "" {
			return nil, rpc.Errorf(rpc.CodeMethodNotFound, "a site is claimed by a key: run agentsite claim with the address that the site shows")
		}
		who, err := identity.Parse(c.Evidence.Peer)
		if err != nil {
			return nil, err
		}
		params, err := decode[P](c)
		if err != nil {
			return nil, err
		}
		return do(ctx, who, params)
	}
}

func decode[P any](c *rpc.Call) (params P, err error) {
	if err := c.Params.Decode(&params); err != nil {
		return params, rpc.Errorf(rpc.CodeInvalidParams, "params: %v", err)
	}
	return params, nil
}

// invalid returns err as the caller's mistake, nil for nil.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	return rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
}

// failed returns err with the code that says whose it is, nil for nil. docs/wire.md lists the codes.
func failed(err error) error {
	var mistake *config.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistake), device.AsFault(err).Kind == device.Invalid:
		return invalid(err)
	case device.AsFault(err).Kind == device.Offline:
		return rpc.Errorf(502, "%v", err)
	}
	return rpc.Errorf(rpc.CodeInternal, "%v", err)
}

func (s *Site) addOutputs(all methods) {
	forOwners(s, all, ResetMethod, "reset", func(ctx context.Context, who agents.Principal, _ None) (none None, _ error) {
		if err := s.Node.Own(who, "reset", "", func() error { return s.Outputs.Reset(ctx) }); err != nil {
			return none, rpc.Errorf(rpc.CodeInternal, "%v", err)
		}
		return none, nil
	})
	forOwners(s, all, ReloadMethod, "reload", func(ctx context.Context, who agents.Principal, _ None) (none None, _ error) {
		var mistake *config.Error
		err := s.Node.Own(who, "reload", "", func() error {
			err := s.Reload(ctx)
			if errors.As(err, &mistake) { // the journal gets its first line, without the excerpt
				line, _, _ := strings.Cut(mistake.Error(), "\n")
				return device.Faultf(device.Invalid, "%s", line)
			}
			return err
		})
		if mistake != nil {
			err = mistake
		}
		return none, failed(err)
	})
	forOwners(s, all, TakeOverMethod, "set --take-over", func(ctx context.Context, who agents.Principal, output Name) (none None, _ error) {
		return none, invalid(s.Node.Own(who, "take-over", output.Name, func() error { return s.Outputs.TakeOver(ctx, who.ID, output.Name) }))
	})
}

func (s *Site) addApprovals(all methods) {
	forOwners(s, all, RequestsMethod, "approve", func(_ context.Context, who agents.Principal, _ None) (waitingCalls, error) {
		waiting, err := s.Node.Requests(who)
		out := waitingCalls{Requests: []Request{}}
		for _, r := range waiting {
			out.Requests = append(out.Requests, Request{r.Handle, r.Who, r.Tool, rpc.RawJSON(r.Args), r.Via, r.Left.Seconds(), r.Holds.Seconds()})
		}
		return out, err
	})
	decide := func(method Method[Name, None], ok bool) {
		forOwners(s, all, method, "approve", func(_ context.Context, who agents.Principal, handle Name) (none None, _ error) {
			return none, invalid(s.Node.Approve(who, handle.Name, ok))
		})
	}
	decide(ApproveMethod, true)
	decide(DenyMethod, false)
}

// addAbout adds the methods about the site and its neighbours.
func (s *Site) addAbout(all methods) {
	forOwners(s, all, RoutesMethod, "doctor", func(context.Context, agents.Principal, None) (Routes, error) { return s.Routes(), nil })
	forOwners(s, all, HealthMethod, "doctor", func(context.Context, agents.Principal, None) (Health, error) { return Health{s.Configuration}, nil })
	forOwners(s, all, TryMethod, "rules try", func(ctx context.Context, who agents.Principal, q trial.Request) (trial.Result, error) {
		r, err := s.Try(ctx, who, q)
		return r, failed(err)
	})
	forOwners(s, all, ImportMethod, "history import", s.importer())
	forOwners(s, all, FindMethod, "find", func(ctx context.Context, _ agents.Principal, w Wanted) (foundAll, error) {
		if s.Find == nil {
			return foundAll{}, rpc.Errorf(rpc.CodeInvalidParams, "this site is in no realm: internet: realm: in its configuration says in which")
		}
		records, err := s.Find(ctx, w.Capability)
		if err != nil {
			return foundAll{}, rpc.Errorf(503, "%v", err)
		}
		all := foundAll{Found: []Found{}}
		for _, r := range records {
			all.Found = append(all.Found, NewFound(r))
		}
		return all, nil
	})
}

// addHosted adds the methods about the hosted agents.
func (s *Site) addHosted(all methods) {
	forOwners(s, all, AgentsMethod, "rules", func(ctx context.Context, _ agents.Principal, _ None) (hosted.Agents, error) {
		return hosted.Agents{Agents: s.Hosted.List(ctx)}, nil
	})
	change := func(method Method[Name, None], verb string, do func(name string) error) {
		forOwners(s, all, method, "rules "+verb, func(_ context.Context, who agents.Principal, a Name) (none None, _ error) {
			return none, failed(s.Node.Own(who, verb, a.Name, func() error { return do(a.Name) }))
		})
	}
	forOwners(s, all, ConnectMethod, "sites connect", func(_ context.Context, who agents.Principal, grant Name) (out agent.Connected, _ error) {
		err := s.Node.Own(who, "connect", "", func() (err error) { out, err = s.Connect(grant.Name); return err })
		return out, failed(err)
	})
	forOwners(s, all, OfferMethod, "agents tools", func(ctx context.Context, who agents.Principal, a agent.Acceptance) (agent.Offer, error) {
		if a.Digest != "" {
			err := s.Node.Own(who, "accept", a.Agent, func() error { return s.Hosted.AcceptOffer(ctx, a.Agent, a.Digest) })
			if err != nil {
				return agent.Offer{}, failed(err)
			}
		}
		offer, err := s.Hosted.Offered(ctx, a.Agent)
		return offer, failed(err)
	})
	change(PauseMethod, "pause", func(name string) error { return s.Hosted.Pause(name) })
	change(ResumeMethod, "resume", func(name string) error { return s.Hosted.Resume(name) })
}

// importer returns the function for ImportMethod. An import is many calls, of which the journal has
// one a minute for each point.
func (s *Site) importer() func(context.Context, agents.Principal, Import) (imported, error) {
	var mu sync.Mutex
	noted := make(map[string]time.Time)
	fresh := func(who, point string) bool {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(noted, func(_ string, at time.Time) bool { return time.Since(at) > time.Minute })
		key := who + " " + point
		_, had := noted[key]
		if !had {
			noted[key] = time.Now()
		}
		return !had
	}
	return func(_ context.Context, who agents.Principal, p Import) (out imported, err error) {
		var readings []device.Summary
		for _, r := range p.Readings {
			readings = append(readings, r.Summary())
		}
		add := func() (err error) {
			out.Imported, err = s.Import(p.Point, readings)
			return err
		}
		switch {
		case p.Dry:
			out.Imported, err = s.WouldImport(p.Point, readings)
		case fresh(who.ID, p.Point):
			err = s.Node.Own(who, "import", p.Point, add)
		default:
			err = add()
		}
		return out, failed(err)
	}
}
