// Package acts has the operations of a site's owners: access and approvals, the configuration, the
// hosted agents, the emergency stop's reset, time. They are rows that carriers and adapters render
// for owners, and no tool of a model is among them.
package acts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/op"
	"agentsite/agents/rule/trial"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/hosted"
	"agentsite/node/identity"
	"agentsite/node/imports"
	"agentsite/node/journal"
	"agentsite/node/logs"
	"agentsite/node/push"
	"agentsite/node/rollback"
	"agentsite/node/state/backup"

	"github.com/go-json-experiment/json/jsontext"
)

// Site holds the objects that the operations act on. Every field but Find, Public, SignIns, Trials, Backups and
// Simulate is required.
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
	// Rewrite replaces the text of the configuration's file as state.Rewrite does.
	Rewrite func(file string, before, text []byte) error
	// Check checks a configuration, and returns what may be meant otherwise.
	Check func(ctx context.Context, text []byte) (doubts []error, err error)
	// Drivers describes the drivers by that name of theirs or of a part; "" lists all, without their keys.
	// It fails with an error that is the caller's mistake.
	Drivers func(name string) ([]Driver, error)
	// Scan finds the connected parts that are not in the configuration.
	Scan func(context.Context) (Scanned, error)
	// Pinout returns the header that the configuration is wired to, and Doctor what is wrong with it and with the
	// machine; both look at the file as it is. Schema returns the JSON Schema of a configuration.
	Pinout func() (Pinout, error)
	Doctor func(context.Context) (Diagnosis, error)
	Schema func() ([]byte, error)
	// Journal returns a page of the journal.
	Journal func(context.Context, journal.Filter) (journal.Page, error)

	Backups *backup.Exporter // nil for the demonstration

	// Import adds past readings of a measurement, and returns how many it took; WouldImport returns how
	// many it would take. They fail with a device.Fault that is Invalid where the caller can mend it.
	Import, WouldImport func(point string, readings []device.Summary) (int, error)

	// Phone waits for a browser that shows a code, and returns its key.
	Phone  func(ctx context.Context, code string) (PhoneKey, error)
	Phones *push.Store // those that are told what happens
	Log    *logs.Ring  // nil for none
	// Granted is told of each key, a did:key, that was granted something; nil for nobody.
	Granted func(did string)

	Hosted interface { // the agents that the site hosts
		List(ctx context.Context) []hosted.Agent
		Pause(name string) error
		Resume(name string) error
		Offered(ctx context.Context, name string) (agent.Offer, error)
		AcceptOffer(ctx context.Context, name, digest string) error
	}

	Bundles *imports.Store // the agents that came to the site as bundles

	// Connect stores a grant of another site. It fails with a device.Fault that is Invalid where the
	// caller can mend it.
	Connect func(grant string) (agent.Connected, error)

	// Try tries rules over the past, as trials.Runner does. It fails with a device.Fault that is
	// Invalid where the caller can mend it.
	Try func(context.Context, agents.Principal, trial.Request) (trial.Result, error)

	// Public returns how the URL is at which programs sign in; nil where they cannot.
	Public func(ctx context.Context, look bool) PublicState

	// Find returns the realm's sites that have a capability; "" lists those that are known already.
	// It blocks until all were asked or ctx ends; nil without a realm.
	Find func(ctx context.Context, capability string) ([]Found, error)

	// SignIns are the programs that ask to sign in; nil where none can. Its errors are the caller's mistakes.
	SignIns interface {
		Waiting() []SignIn
		Allow(handle, name string, grant []byte) error
		Deny(handle string) error
	}

	// Updates returns the operations that update the site; nil for none.
	Updates func() []op.Row

	// Trials tries configurations, and Problems returns what is wrong with the site, by the name of the thing; both
	// are nil for the demonstration.
	Trials   *rollback.Manager
	Problems func(context.Context) map[string]string

	// Simulate tells the fakes of a simulated site what to read; nil for a site with real devices. Its errors are
	// faults.
	Simulate func(context.Context, Simulated) error

	Configuring sync.Mutex // one change of the configuration at a time
}

// outputs has the owner's methods on the outputs. Both may block for the guard.
type outputs interface {
	Reset(ctx context.Context) error
	TakeOver(ctx context.Context, holder, output string) error
}

// Operations returns the owners' operations.
func (s *Site) Operations() []op.Row {
	all := slices.Concat(s.aboutOutputs(), s.aboutAccess(), s.Phones.Operations(s.Node.Own, s.Access.Called), s.aboutOwners(), s.aboutSite(), s.aboutConfiguration(),
		s.Backups.Operations(s.Node.Own), s.Trials.Operations(s.Node.Own), s.aboutParts(), s.aboutBoard(),
		s.Log.Operations(), s.aboutAgents(), s.aboutBundles(), s.aboutFakes())
	if s.Updates != nil {
		all = append(all, s.Updates()...)
	}
	for i, row := range all {
		all[i].Do = func(ctx context.Context, p agents.Principal, decode func(any) error) (any, error) {
			if s.Node.Owner(p) != nil {
				p.Owner = false // not any more
			}
			return row.Do(ctx, p, decode)
		}
	}
	return all
}

// mistake returns err as the caller's mistake, nil for nil.
func mistake(err error) error {
	if err == nil {
		return nil
	}
	return device.Faultf(device.Invalid, "%w", err)
}

// noted runs do and journals it under a word, with what it is about; "" for nothing.
func (s *Site) noted(who agents.Principal, word, about string, do func() error) (None, error) {
	return None{}, s.Node.Own(who, word, about, do)
}

// named returns the method of an operation on something by its name. The journal has it under a
// word; any error is the caller's mistake.
func (s *Site) named(word string, do func(name string) error) op.Method[Name, None] {
	return func(_ context.Context, who agents.Principal, about Name) (None, error) {
		return s.noted(who, word, about.Name, func() error { return mistake(do(about.Name)) })
	}
}

func (s *Site) aboutOutputs() []op.Row {
	return []op.Row{
		op.ForOwners(ResetAct, agents.Acts, "reset", "End the emergency stop.",
			func(ctx context.Context, who agents.Principal, _ None) (None, error) {
				return s.noted(who, "reset", "", func() error { return s.Outputs.Reset(ctx) })
			}),
		op.ForOwners(TakeOverAct, agents.Acts, "set --take-over", "Become the holder of an output.",
			func(ctx context.Context, who agents.Principal, o Name) (None, error) {
				return s.noted(who, "take-over", o.Name, func() error { return mistake(s.Outputs.TakeOver(ctx, who.ID, o.Name)) })
			}),
		op.ForOwners(RequestsAct, agents.Reads, "approve", "List the calls and the programs that wait for an owner.", s.requests),
		op.ForOwners(ApproveAct, agents.Acts, "approve", "Approve the call with a handle.", s.decide(true)),
		op.ForOwners(DenyAct, agents.Returns, "approve", "Deny the call, the sign-in or the wish with a handle.", s.decide(false)),
	}
}

func (s *Site) requests(_ context.Context, who agents.Principal, _ None) (waitingCalls, error) {
	waiting, err := s.Node.Requests(who)
	out := waitingCalls{Requests: []Request{}}
	for _, r := range waiting {
		out.Requests = append(out.Requests, Request{
			r.Handle, r.Who, r.Tool, jsontext.Value(r.Args), r.Via, r.Left.Seconds(), r.Holds.Seconds(),
		})
	}
	if err != nil {
		return out, err
	}
	if s.SignIns != nil {
		out.SignIns = s.SignIns.Waiting()
	}
	wishes, err := s.Node.Wishes(who)
	if len(wishes) == 0 {
		return out, err
	}
	tokens := s.Access.Tokens()
	for _, w := range wishes {
		i := slices.IndexFunc(tokens, func(t access.Token) bool { return t.Name == w.Token && t.SignIn != nil })
		if i < 0 {
			continue // it has ended meanwhile
		}
		g, err := access.ParseGrant(tokens[i].Grant)
		if err != nil {
			return out, err
		}
		out.Wishes = append(out.Wishes, Wish{
			w.Handle, w.Token, tokens[i].SignIn.Client, tokens[i].SignIn.Host, w.Who, w.Tool, jsontext.Value(w.Args),
			w.Times, w.Ago.Seconds(), w.Left.Seconds(), w.May, g.Until(),
		})
	}
	return out, nil
}

func (s *Site) decide(ok bool) op.Method[Name, None] {
	return func(_ context.Context, who agents.Principal, handle Name) (None, error) {
		if s.SignIns != nil && !ok && strings.Contains(handle.Name, "-") { // handles of calls have none
			return s.noted(who, "deny", "sign-in "+handle.Name, func() error { return s.SignIns.Deny(handle.Name) })
		}
		return None{}, mistake(s.Node.Approve(who, handle.Name, ok))
	}
}

// aboutSite has the operations on the site as a whole and its neighbours.
func (s *Site) aboutSite() []op.Row {
	return []op.Row{
		op.ForOwners(ReloadAct, agents.Acts, "reload", "Read the configuration again.", s.reload),
		op.ForOwners(JournalAct, agents.Reads, "journal",
			"Tell who did what: a page of the journal, whose chain is verified.",
			func(ctx context.Context, _ agents.Principal, f journal.Filter) (journal.Page, error) {
				return s.Journal(ctx, f)
			}),
		op.ForOwners(HealthAct, agents.Reads, "doctor", "Tell which file the configuration is.",
			func(context.Context, agents.Principal, None) (Health, error) { return Health{s.Configuration}, nil }),
		op.ForOwners(PublicAct, agents.Reads, "public", "Tell how the URL for programs that sign in is, and its certificate.", s.public),
		op.ForOwners(RoutesAct, agents.Reads, "doctor", "List everything that listens.",
			func(context.Context, agents.Principal, None) (Routes, error) { return s.Routes(), nil }),
		op.ForOwners(ImportAct, agents.Acts, "history import", "Add past readings of a measurement.", s.importer()),
		op.ForOwners(FindAct, agents.Reads, "find", "Find other sites of the realm.", s.find),
	}
}

func (s *Site) public(ctx context.Context, _ agents.Principal, how LookAtPublic) (PublicState, error) {
	if s.Public == nil {
		return PublicState{}, device.Faultf(device.Invalid,
			"this site has no public name, and programs cannot sign in: internet: public: in its configuration gives it one, "+
				"and http: oauth: on lets programs of its own network sign in")
	}
	return s.Public(ctx, how.Look), nil
}

// reload reads the configuration again. The journal gets the first line of a mistake in it, without
// the excerpt.
func (s *Site) reload(ctx context.Context, who agents.Principal, _ None) (None, error) {
	var wrong *config.Error
	none, err := s.noted(who, "reload", "", func() error {
		err := s.Reload(ctx)
		if errors.As(err, &wrong) {
			return device.Faultf(device.Invalid, "%s", firstLine(wrong))
		}
		return err
	})
	if wrong != nil {
		err = mistake(wrong)
	}
	return none, err
}

// firstLine returns an error's text without the excerpt of the configuration.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func (s *Site) find(ctx context.Context, _ agents.Principal, w Wanted) (foundAll, error) {
	if s.Find == nil {
		return foundAll{}, device.Faultf(device.Invalid,
			"this site is in no realm: internet: realm: in its configuration says in which")
	}
	found, err := s.Find(ctx, w.Capability)
	if err != nil {
		return foundAll{}, device.Faultf(device.Unavailable, "%w", err)
	}
	return foundAll{Found: append([]Found{}, found...)}, nil
}

// aboutAgents has the operations on the hosted agents.
func (s *Site) aboutAgents() []op.Row {
	return []op.Row{
		op.ForOwners(AgentsAct, agents.Reads, "rules", "List the agents that the site hosts.",
			func(ctx context.Context, _ agents.Principal, _ None) (hosted.Agents, error) {
				return hosted.Agents{Agents: s.Hosted.List(ctx)}, nil
			}),
		op.ForOwners(PauseAct, agents.Acts, "rules pause", "Pause a hosted agent.",
			func(_ context.Context, who agents.Principal, a Name) (None, error) {
				return s.noted(who, "pause", a.Name, func() error { return s.Hosted.Pause(a.Name) })
			}),
		op.ForOwners(ResumeAct, agents.Acts, "rules resume", "Resume a paused agent.",
			func(_ context.Context, who agents.Principal, a Name) (None, error) {
				return s.noted(who, "resume", a.Name, func() error { return s.Hosted.Resume(a.Name) })
			}),
		op.ForOwners(OfferAct, agents.Acts, "agents tools",
			"Ask an agent's program for its tools, or accept them as they were shown.", s.offer),
		op.ForOwners(TryAct, agents.Reads, "rules try", "Try rules over the past.",
			func(ctx context.Context, who agents.Principal, q trial.Request) (trial.Result, error) {
				return s.Try(ctx, who, q)
			}),
		op.ForOwners(ConnectAct, agents.Acts, "sites connect",
			"Store another site's grant for the agents of this one.", s.connect),
	}
}

func (s *Site) offer(ctx context.Context, who agents.Principal, a agent.Acceptance) (agent.Offer, error) {
	if a.Digest != "" {
		err := s.Node.Own(who, "accept", a.Agent, func() error { return s.Hosted.AcceptOffer(ctx, a.Agent, a.Digest) })
		if err != nil {
			return agent.Offer{}, err
		}
	}
	return s.Hosted.Offered(ctx, a.Agent)
}

func (s *Site) connect(_ context.Context, who agents.Principal, grant Name) (out agent.Connected, err error) {
	err = s.Node.Own(who, "connect", "", func() (err error) { out, err = s.Connect(grant.Name); return err })
	return out, err
}
