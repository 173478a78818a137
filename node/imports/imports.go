package imports

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/bundle"
	"agentsite/node/config"
	"agentsite/node/hosted"
)

// Options configure a Store.
type Options struct {
	Hosted manager
	// Points returns the points of the site.
	Points func(ctx context.Context, who agents.Principal) ([]agents.Point, error)
	File   []byte             // as stored; nil for none
	Write  func([]byte) error // replaces the file, durably

	// The bundles that the site shares with its realm. MayShare says why it cannot share any, and
	// MayPublish why it cannot publish any; in the public realm a site only publishes. Shared is
	// their file as stored, and WriteShared replaces that. OnShare is called after each change and
	// does not block.
	MayShare    func() error
	MayPublish  func() error
	Shared      []byte
	WriteShared func([]byte) error
	OnShare     func()
}

// manager runs the agents that are accepted, as hosted.Manager does.
type manager interface {
	Configured() []hosted.Configured
	Define(i hosted.Imported, alone bool) (hosted.Configured, error)
	SetImports([]hosted.Imported) error
}

// Store has the imports of a site. Its methods are safe for concurrent use. They refuse a request
// by an Invalid device.Fault, without any change.
type Store struct {
	Options
	mu     sync.Mutex
	kept   *bundle.Imports
	damage error // why the file cannot be read; nothing replaces it then

	shared       *bundle.Shared // replaced whole
	sharedDamage error
}

// New reads the imports, and makes the manager run the accepted ones. A damaged file is an error of
// every change, and none of the start.
func New(o Options) (*Store, error) {
	s := &Store{Options: o}
	if s.shared, s.sharedDamage = bundle.DecodeShared(o.Shared); s.sharedDamage != nil {
		s.shared = new(bundle.Shared)
	}
	if s.kept, s.damage = bundle.DecodeImports(o.File); s.damage != nil {
		s.kept = new(bundle.Imports)
		return s, nil
	}
	return s, o.Hosted.SetImports(accepted(s.kept))
}

// Damage returns why the imports cannot be read; nil where they can.
func (s *Store) Damage() error { return s.damage }

// Request asks for an import.
type Request struct {
	Bundle []byte           `json:"bundle"`
	As     string           `json:"as,omitzero"` // its name here; the bundle's own when left out
	Bind   []bundle.Binding `json:"bind,omitzero"`
	Again  bool             `json:"again,omitzero"` // also a bundle that was removed
	// Replaces names the import of which this is a newer version; once it is accepted, it has its name.
	Replaces string `json:"replaces,omitzero"`
}

// Draft is an import, for its owner.
type Draft struct {
	Name   string           `json:"name"`
	Kind   string           `json:"kind"`
	Author string           `json:"author"` // a did:key, or the agent of the site that wrote it, with who asked it to
	Needs  []bundle.Need    `json:"needs"`
	Bound  []bundle.Binding `json:"bound"`
	Says   string           `json:"definition"`      // YAML, as its author wrote it: people and models are told texts of it
	Wish   string           `json:"wish,omitzero"`   // the permission that its author asks for, about the points here
	Excess []string         `json:"excess,omitzero"` // what of it is about more than its needs
	May    string           `json:"may,omitzero"`    // what it may: nothing before it is accepted

	Own      string `json:"own_name,omitzero"` // the name that its author gave it
	Asks     string `json:"asks,omitzero"`     // Wish, about its needs
	Accepted bool   `json:"accepted,omitzero"`
	Version  uint32 `json:"version,omitzero"`
	Replaces string `json:"replaces,omitzero"`
}

// Acceptance is the permission that an owner gives a draft.
type Acceptance struct {
	Name string `json:"name"`
	May  string `json:"may"`
}

// Import verifies a bundle, binds its needs to points, and keeps it as a draft. It chooses the
// only point that fits where none is named.
func (s *Store) Import(ctx context.Context, who agents.Principal, q Request) (Draft, error) {
	return s.add(ctx, who, q, bundle.Proposal{})
}

// add is Import, for a draft that an agent of the site may have written.
func (s *Store) add(ctx context.Context, who agents.Principal, q Request, by bundle.Proposal) (Draft, error) {
	b, err := bundle.Open(q.Bundle)
	if err != nil {
		return Draft{}, invalid(err)
	}
	i := bundle.Import{Name: cmp.Or(q.As, b.Name), File: q.Bundle, Bundle: b, By: by}
	points, err := s.Points(ctx, who)
	if err != nil {
		return Draft{}, err
	}
	if q.Replaces != "" {
		if err := s.update(&i, &q, points); err != nil {
			return Draft{}, err
		}
	}
	if err := device.CheckName(i.Name); err != nil {
		return Draft{}, err
	}
	if i.Bound, err = bind(b, q.Bind, points); err != nil {
		return Draft{}, invalid(err)
	}
	if _, err := s.define(i, true); err != nil {
		return Draft{}, err
	}
	err = s.change(func(kept *bundle.Imports) error { return kept.Add(i, q.Again) })
	return draft(i), err
}

// Accept makes a draft run with a permission.
func (s *Store) Accept(a Acceptance) (Draft, error) {
	if strings.TrimSpace(a.May) == "" {
		return Draft{}, device.Faultf(device.Invalid, "write what it may, such as --may 'set house/heater max 5m'; what its author wishes for counts for nothing")
	}
	if _, err := access.ParsePermissions(a.May); err != nil {
		return Draft{}, device.Faultf(device.Invalid, "the permission %.60q: %w", a.May, err)
	}
	var done Draft
	err := s.change(func(kept *bundle.Imports) error {
		k := kept.Find(a.Name)
		if k < 0 {
			return missing(kept, a.Name)
		}
		i := kept.All[k]
		if i.Accepted {
			return device.Faultf(device.Invalid, "%s is accepted already, and may: %s; to change that, remove it and import it again", i.Name, i.May)
		}
		if err := kept.Room(bundle.Proposal{}); err != nil && i.By != (bundle.Proposal{}) { // it is the owner's from now on
			return err
		}
		i.Accepted, i.May = true, a.May
		if i.Replaces != "" {
			var err error
			if k, err = kept.Supersede(k); err != nil {
				return err
			}
			i.Name, i.Replaces = i.Replaces, ""
		}
		if _, err := s.define(i, false); err != nil {
			return err
		}
		kept.All = slices.Clone(kept.All)
		kept.All[k], done = i, draft(i)
		return nil
	})
	return done, err
}

// Remove removes a draft, or ends and removes an accepted import.
func (s *Store) Remove(name string) error {
	return s.change(func(kept *bundle.Imports) error {
		k := kept.Find(name)
		if k < 0 {
			return missing(kept, name)
		}
		kept.Remove(k)
		return nil
	})
}

// Draft returns a draft as an agent that could be tried. ok is false where there is none.
func (s *Store) Draft(name string) (c hosted.Configured, ok bool, err error) {
	s.mu.Lock()
	k := s.kept.Find(name)
	var i bundle.Import
	if k >= 0 {
		i = s.kept.All[k]
	}
	s.mu.Unlock()
	if k < 0 || i.Accepted {
		return c, false, nil
	}
	c, err = s.define(i, true)
	return c, true, err
}

// List returns the drafts as agents of the site that do not run.
func (s *Store) List() (all []hosted.Agent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.kept.All {
		if i.Accepted {
			continue
		}
		bound := make(map[string]string, len(i.Bound))
		for _, b := range i.Bound {
			bound[b.Need] = b.Point
		}
		all = append(all, hosted.Agent{Name: i.Name, Kind: i.Kind, Principal: i.Kind + ":" + i.Name, Author: i.WrittenBy(),
			Definition: i.Definition, Bound: bound, Wish: wishHere(i),
			Report: agent.Report{State: agent.Draft, Says: "it runs once it is accepted, and may nothing"}})
	}
	return all
}

// change stores a change durably and passes it to the manager. After an error everything is as it
// was.
func (s *Store) change(change func(*bundle.Imports) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.damage != nil {
		return device.Faultf(device.Unavailable, "the imports of this site cannot be read, so they stay as they are (%w); restore them from a backup, or remove the file imports from the data folder", s.damage)
	}
	next := *s.kept
	if err := change(&next); err != nil {
		return invalid(err)
	}
	file, err := next.Encode()
	if err != nil {
		return invalid(err)
	}
	if err := s.Write(file); err != nil {
		return device.Faultf(device.Unavailable, "everything stays as it is, because the disk does not store the change: %w", err)
	}
	if err := s.Hosted.SetImports(accepted(&next)); err != nil {
		before, again := s.kept.Encode()
		if again == nil {
			again = s.Write(before)
		}
		return errors.Join(err, again)
	}
	s.kept = &next
	return nil
}

// define returns the agent of an import, and refuses it if it cannot be defined here.
func (s *Store) define(i bundle.Import, alone bool) (hosted.Configured, error) {
	entry, err := entryOf(i)
	if err != nil {
		return hosted.Configured{}, oneLine(err)
	}
	c, err := s.Hosted.Define(hosted.Imported{Agent: entry, Author: i.WrittenBy()}, alone)
	if err != nil {
		return c, oneLine(err)
	}
	for _, address := range c.Reads {
		if !slices.ContainsFunc(i.Bound, func(b bundle.BoundNeed) bool { return b.Point == address }) {
			return c, device.Faultf(device.Invalid, "its definition names %.60q, which is none of its needs: ask its author for another", address)
		}
	}
	return c, nil
}

// entryOf returns an import as an entry of the configuration would be, with points for needs.
func entryOf(i bundle.Import) (config.Agent, error) {
	a, err := config.ParseAgent(i.Name, i.Name, i.Kind, i.May, []byte(i.Definition))
	if err != nil {
		return a, err
	}
	return a.Renamed(renames(i)), nil
}

// renames returns the names of points for those of needs.
func renames(i bundle.Import) func(string) string {
	return func(address string) string {
		for k, n := range i.Needs {
			if n.Address() == address {
				return i.Bound[k].Point
			}
		}
		return address
	}
}

func accepted(kept *bundle.Imports) (all []hosted.Imported) {
	for _, i := range kept.All {
		if !i.Accepted {
			continue
		}
		if entry, err := entryOf(i); err == nil { // it was parsed when it came
			all = append(all, hosted.Imported{Agent: entry, Author: i.WrittenBy()})
		}
	}
	return all
}

func missing(kept *bundle.Imports, name string) error {
	var names []string
	for _, i := range kept.All {
		names = append(names, i.Name)
	}
	return device.Faultf(device.Invalid, "no import is called %.60q%s; agents of the configuration are changed there", name, device.Suggest(name, names, "import"))
}

func draft(i bundle.Import) Draft {
	bound := make([]bundle.Binding, len(i.Bound))
	for k, b := range i.Bound {
		bound[k] = bundle.Binding(b)
	}
	return Draft{Name: i.Name, Kind: i.Kind, Author: i.WrittenBy(), Needs: i.Needs, Bound: bound, Says: i.Definition,
		Wish: wishHere(i), Excess: i.Excess(), May: i.May, Own: i.Bundle.Name, Asks: i.Bundle.May,
		Accepted: i.Accepted, Version: i.Version, Replaces: i.Replaces}
}

// invalid marks an error as the caller's mistake.
func invalid(err error) error {
	if fault := new(device.Fault); errors.As(err, &fault) {
		return err
	}
	return device.Faultf(device.Invalid, "%w", err)
}

// oneLine returns the first mistake of a definition, whose lines its importer does not see.
func oneLine(err error) error {
	var mistake *config.Error
	if errors.As(err, &mistake) {
		says, _, _ := strings.Cut(mistake.Err.Error(), "\n") // the others show the place
		return device.Faultf(device.Invalid, "its definition, line %d: %s", mistake.Line, says)
	}
	return invalid(err)
}
