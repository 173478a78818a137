package hosted

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/principal"
	"agentsite/agents/rule/calendar"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
)

const (
	maxAgents = 64
	// Back-off of running an agent again that failed: it doubles from the one to the other,
	// and begins anew after an agent has run for the longer.
	retry    = time.Second
	retryMax = 5 * time.Minute
	// endTimeout bounds how long the end of the site waits for its agents.
	endTimeout = 5 * time.Second
)

// entry is an agent as it is configured.
type entry struct {
	config.Agent
	self  agents.Principal
	may   []access.Permission
	agent agent.Agent // nil for an import that does not go with the configuration
	agent.Definition
	author string // of an import; "" for an agent of the configuration

	failed atomic.Pointer[failure] // the last one; nil for none
	down   atomic.Bool             // since then it does not run
}

// failure is why an agent ended before it was to.
type failure struct {
	says string
	at   time.Time
}

// fail notes why the agent does not run.
func (e *entry) fail(says string) {
	e.failed.Store(&failure{says, time.Now()})
	e.down.Store(true)
}

// Kinds returns the kinds of agents that there are, for a configuration.
type Kinds func(*config.Site) []agent.Kind

// Check finds the mistakes that the kinds of the configured agents and their permissions
// have: each is an error at its line.
func Check(cfg *config.Site, kinds Kinds) error {
	_, err := decode(cfg, kinds)
	return err
}

func decode(cfg *config.Site, list Kinds) ([]*entry, error) {
	kinds := list(cfg)
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	var all []*entry
	var errs []error
	for n, a := range cfg.Agents {
		if n == maxAgents {
			errs = append(errs, a.Errorf("kind", "a site has at most %d agents; remove one", maxAgents))
			break
		}
		i := slices.Index(names, a.Kind)
		if i < 0 {
			errs = append(errs, a.Errorf("kind", "there is no kind %.40q%s", a.Kind, device.Suggest(a.Kind, names, "kind")))
			continue
		}
		e := &entry{Agent: a, self: principal.Agent(a.Kind, a.Name), agent: kinds[i].New()}
		if n, ok := e.agent.(agent.Named); ok {
			n.SetName(a.Name)
		}
		decoded := a.Decode(e.agent)
		if decoded != nil {
			errs = append(errs, decoded)
		}
		if a.May != "" {
			may, err := access.ParsePermissions(a.May)
			if err != nil {
				errs = append(errs, a.Errorf("may", "may: %w", err))
			}
			e.may = may
		}
		if decoded == nil { // otherwise its keys are not all known
			if err := e.define(); err != nil {
				errs = append(errs, err)
			}
		}
		if _, ok := e.agent.(agent.Worker); !ok {
			for key, set := range map[string]bool{"tags": len(a.Tags) > 0, "listed": a.Listed} {
				if set {
					errs = append(errs, a.Errorf(key, "%s is for agents that can be asked, which a %s is not; remove it", key, a.Kind))
				}
			}
		}
		for _, other := range all {
			if err := e.conflict(other); err != nil {
				errs = append(errs, err)
			}
		}
		all = append(all, e)
	}
	errs = append(errs, elsewhere(cfg, all)...)
	return all, errors.Join(errs...)
}

// define asks the agent what its definition says.
func (e *entry) define() error {
	defined, ok := e.agent.(agent.Defined)
	if !ok {
		return nil
	}
	d, err := defined.Define()
	var wrong *agent.Mistake
	if errors.As(err, &wrong) {
		return e.Errorf(wrong.Key, "%w", wrong)
	}
	if err != nil {
		return e.Errorf("kind", "%w", err)
	}
	e.Definition = d
	if len(d.Reads) == 0 {
		return nil
	}
	for _, address := range d.Reads { // anything else would be a permission of its own words
		names := strings.Split(address, "/")
		if len(names) < 2 || len(names) > 3 || slices.ContainsFunc(names, func(n string) bool { return device.CheckName(n) != nil }) {
			return e.Errorf("kind", "%.60q is not the address of a point; write it like climate/temperature, or greenhouse/climate/temperature for another site's", address)
		}
	}
	reads, err := access.ParsePermissions("read " + strings.Join(d.Reads, "+"))
	if err != nil {
		return e.Errorf("kind", "it reads too much: %w", err)
	}
	e.may = append(reads, e.may...)
	return nil
}

// conflict refuses two agents that move one output, where neither wins.
func (e *entry) conflict(other *entry) error {
	for _, tool := range e.Tools {
		if slices.Contains(other.Tools, tool) {
			return e.Errorf("tools", "%s offers a tool %s, too; write another name under \"rename:\"", other.Name, tool)
		}
	}
	if e.Rank != other.Rank {
		return nil
	}
	for _, output := range e.Moves {
		if slices.Contains(other.Moves, output) {
			return e.Errorf("priority", "%s is moved by %s, too; give one of them the higher \"priority:\", which wins, or move it by one of them only", output, other.Name)
		}
	}
	return nil
}

// Options are what a Manager works with.
type Options struct {
	Site  agents.Site // what the agents ask
	Kinds Kinds
	// Permit replaces the permissions of all hosted agents, by principal, and ends what was
	// held by those that are gone, as access.Store.SetHosted does.
	Permit func(map[string][]access.Permission) error
	Tell   func(map[string]node.Hosted) // replaces what the node knows of them
	Link   func([]agent.Link)           // replaces what they ask of other sites; nil where they ask none
	Paused []string                     // the names of agents that are not to run
	// AllPaused has those of the first configuration be paused, as it is not known which were.
	AllPaused bool
	Keep      func([]string) error // makes Paused durable
	// Host replaces the agents that offer tools of their own; nil where none can.
	Host func(...tools.Agent)
	// OnDefect is told which agent panicked, and writes it down. It does not block; nil for nothing.
	OnDefect func(principal string, err error)
	// OnChange is called when agents came, went, were paused or resumed. It does not block; nil
	// for nothing.
	OnChange func()
}

// Manager runs a site's hosted agents.
type Manager struct {
	Options

	next    chan []*entry                 // the newest configuration that Run has not taken up yet
	running map[string]*running           // by name; only Run has it
	offer   atomic.Pointer[chan struct{}] // closed by Retry

	mu      sync.Mutex   // guards what follows, and orders Apply
	cfg     *config.Site // nil before the first Apply
	imports []Imported
	all     []*entry // as applied, paused ones too
	place   *calendar.Place
	days    calendar.Holidays
	offered []tools.Agent // as the node was told
}

// running is an agent at work.
type running struct {
	*entry // nil once it is stopped
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// end ends the agent; cause is agent.ErrRemoved or nil.
func (r *running) end(cause error) {
	r.cancel(cause)
	if a, ok := r.agent.(agent.Resting); ok {
		a.End()
	}
}

// New returns a manager that runs nothing yet.
func New(o Options) *Manager {
	m := &Manager{Options: o, next: make(chan []*entry, 1), running: make(map[string]*running)}
	m.offer.Store(new(make(chan struct{})))
	return m
}

// Retry has agents that failed be run again soon: what the site offers has changed, and may be what
// they lack. It does not block.
func (m *Manager) Retry() { close(*m.offer.Swap(new(make(chan struct{})))) }

// Apply takes up a configuration. Permissions hold, and those that are gone have ended,
// when it returns; Run starts and stops the agents. After an error, which is a mistake in
// the configuration, everything stays as it was. Imports go on beside it.
func (m *Manager) Apply(cfg *config.Site) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.apply(cfg, m.imports)
}

func (m *Manager) apply(cfg *config.Site, imports []Imported) error {
	all, err := merge(cfg, imports, m.Kinds)
	if err != nil {
		return err
	}
	if err := m.keepsImports(all); err != nil {
		return err
	}
	permissions, known := make(map[string][]access.Permission), make(map[string]node.Hosted)
	for _, e := range all {
		if e.agent == nil {
			continue
		}
		if e.may != nil {
			permissions[e.self.ID] = e.may
		}
		known[e.self.ID] = node.Hosted{Rank: e.Rank, Reads: e.Reads, Fixed: e.Fixed}
	}
	if err := m.Permit(permissions); err != nil {
		return err
	}
	if m.Link != nil {
		m.Link(links(all))
	}
	m.Tell(known)
	for i, e := range all {
		k := slices.IndexFunc(m.all, func(before *entry) bool {
			return before.Same(e.Agent) && before.author == e.author && before.agent != nil && e.agent != nil
		})
		if k >= 0 && samePlace(m.place, cfg.Place) && slices.Equal(m.days, cfg.Holidays) { // it goes on undisturbed
			all[i] = m.all[k]
		}
	}
	m.cfg, m.imports, m.all, m.place, m.days = cfg, imports, all, cfg.Place, cfg.Holidays
	if m.AllPaused {
		m.AllPaused = false
		for _, e := range all {
			m.Paused = append(m.Paused, e.Name)
		}
	}
	m.tell()
	return nil
}

func samePlace(a, b *calendar.Place) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// tell tells Run which agents are to run, in place of what it has not seen yet.
func (m *Manager) tell() {
	select {
	case <-m.next:
	default:
	}
	m.next <- slices.DeleteFunc(slices.Clone(m.all), func(e *entry) bool { return e.agent == nil || slices.Contains(m.Paused, e.Name) })
	m.host(false)
	if m.OnChange != nil {
		m.OnChange()
	}
}

// Run runs the agents until ctx ends, and returns when they have ended, or after
// endTimeout.
func (m *Manager) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			patience := time.After(endTimeout)
			for _, r := range m.running {
				if r.entry != nil {
					r.end(nil)
				}
			}
			for _, r := range m.running {
				select {
				case <-r.ended:
				case <-patience:
					slog.Error("hosted agents do not end")
					return
				}
			}
			return
		case all := <-m.next:
			m.replace(ctx, all)
		}
	}
}

// replace stops the agents that are gone or different, and starts those that are new. An
// agent that is as it was goes on undisturbed, and a new one begins when the one of that
// name has ended.
func (m *Manager) replace(ctx context.Context, all []*entry) {
	for _, r := range m.running {
		if r.entry != nil && !slices.Contains(all, r.entry) {
			var cause error
			if !m.configured(r.Name) {
				cause = agent.ErrRemoved
			}
			r.end(cause)
			r.entry = nil
		}
	}
	for _, e := range all {
		before := m.running[e.Name]
		if before != nil && before.entry != nil {
			continue
		}
		one, cancel := context.WithCancelCause(ctx)
		r := &running{entry: e, cancel: cancel, ended: make(chan struct{})}
		m.running[e.Name] = r
		slog.Info("hosted agent started", "agent", e.self.ID, "may", strings.TrimSpace(e.May)) // not on the stack below, which stays
		over := func() {
			cancel(nil)
			close(r.ended)
		}
		if _, ok := e.agent.(agent.Resting); ok && before == nil {
			e.run(one, m, retry, over)
			continue
		}
		go func() {
			if before != nil {
				<-before.ended
			}
			e.run(one, m, retry, over)
		}()
	}
}

// configured reports whether the configuration has an agent of that name, paused or not.
func (m *Manager) configured(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.all, func(e *entry) bool { return e.Name == name })
}

// run runs the agent, again after each failure, and calls over when that returned nil or ctx ended. It
// does not block for one that is Resting.
func (e *entry) run(ctx context.Context, m *Manager, pause time.Duration, over func()) {
	began, offer := time.Now(), *m.offer.Load()
	e.down.Store(false)
	ended := func(err error) {
		if err == nil || ctx.Err() != nil {
			slog.Info("hosted agent ended", "agent", e.self.ID)
			over()
			return
		}
		if time.Since(began) > retryMax {
			pause = retry
		}
		e.fail(err.Error())
		slog.Error("hosted agent failed", "agent", e.self.ID, "err", err, "again_in", pause)
		var defect *agent.Defect
		if errors.As(err, &defect) && m.OnDefect != nil {
			m.OnDefect(e.self.ID, err)
		}
		due := time.After(pause)
		select {
		case <-ctx.Done():
		case <-due:
		case <-offer:
			select { // not more often than after a first failure
			case <-ctx.Done():
			case <-due:
			case <-time.After(retry):
			}
		}
		go e.run(ctx, m, min(2*pause, retryMax), over)
	}
	a, resting := e.agent.(agent.Resting)
	switch {
	case ctx.Err() != nil:
		ended(ctx.Err())
	case resting:
		a.Begin(ctx, e.self, m.Site, ended)
	default:
		ended(e.work(ctx, m.Site))
	}
}

func (e *entry) work(ctx context.Context, site agents.Site) (err error) {
	defer agent.Recover(e.self.ID, &err)
	return e.agent.Run(ctx, e.self, site)
}
