package hosted

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/config"
)

const (
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
	agent agents.Hosted
}

// Check finds the mistakes that the kinds of the configured agents and their permissions
// have: each is an error at its line.
func Check(cfg *config.Site, kinds []agents.Kind) error {
	_, err := decode(cfg, kinds)
	return err
}

func decode(cfg *config.Site, kinds []agents.Kind) ([]*entry, error) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	var all []*entry
	var errs []error
	for _, a := range cfg.Agents {
		i := slices.Index(names, a.Kind)
		if i < 0 {
			errs = append(errs, a.Errorf("kind", "there is no kind %.40q%s", a.Kind, device.Suggest(a.Kind, names, "kind")))
			continue
		}
		e := &entry{Agent: a, self: agents.Principal{ID: a.Kind + ":" + a.Name}, agent: kinds[i].New()}
		if err := a.Decode(e.agent); err != nil {
			errs = append(errs, err)
		}
		if a.May != "" {
			may, err := access.ParsePermissions(a.May)
			if err != nil {
				errs = append(errs, a.Errorf("may", "may: %w", err))
			}
			e.may = may
		}
		all = append(all, e)
	}
	return all, errors.Join(errs...)
}

// Manager runs a site's hosted agents.
type Manager struct {
	site   agents.Site
	kinds  []agents.Kind
	permit func(map[string][]access.Permission) error

	next    chan []*entry       // the newest configuration that Run has not taken up yet
	mu      sync.Mutex          // orders Apply
	running map[string]*running // by name; only Run has it
}

// running is an agent at work.
type running struct {
	*entry // nil once it is stopped
	cancel context.CancelFunc
	ended  chan struct{}
}

// New returns a manager for agents of these kinds, which ask site. permit replaces the
// permissions of all hosted agents, by principal, and ends what was held by those that are
// gone, as access.Store.SetHosted does.
func New(site agents.Site, kinds []agents.Kind, permit func(map[string][]access.Permission) error) *Manager {
	return &Manager{site: site, kinds: kinds, permit: permit, next: make(chan []*entry, 1), running: make(map[string]*running)}
}

// Apply takes up a configuration. Permissions hold, and those that are gone have ended,
// when it returns; Run starts and stops the agents. After an error, which is a mistake in
// the configuration, everything stays as it was.
func (m *Manager) Apply(cfg *config.Site) error {
	all, err := decode(cfg, m.kinds)
	if err != nil {
		return err
	}
	permissions := make(map[string][]access.Permission)
	for _, e := range all {
		if e.may != nil {
			permissions[e.self.ID] = e.may
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.permit(permissions); err != nil {
		return err
	}
	select {
	case <-m.next: // Run has not seen it, and goes by the newest
	default:
	}
	m.next <- all
	return nil
}

// Run runs the agents until ctx ends, and returns when they have ended, or after
// endTimeout.
func (m *Manager) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			patience := time.After(endTimeout)
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
		if r.entry != nil && !slices.ContainsFunc(all, func(e *entry) bool { return e.Same(r.Agent) }) {
			r.entry = nil
			r.cancel()
		}
	}
	for _, e := range all {
		before := m.running[e.Name]
		if before != nil && before.entry != nil {
			continue
		}
		one, cancel := context.WithCancel(ctx)
		r := &running{entry: e, cancel: cancel, ended: make(chan struct{})}
		m.running[e.Name] = r
		go func() {
			defer close(r.ended)
			defer cancel()
			if before != nil {
				<-before.ended
			}
			if one.Err() == nil {
				e.run(one, m.site)
			}
		}()
	}
}

// run runs the agent, again after each failure, until it returns nil or ctx ends.
func (e *entry) run(ctx context.Context, site agents.Site) {
	slog.Info("hosted agent started", "agent", e.self.ID, "may", strings.TrimSpace(e.May))
	defer slog.Info("hosted agent ended", "agent", e.self.ID)
	pause := retry
	for {
		began := time.Now()
		err := e.agent.Run(ctx, e.self, site)
		if err == nil || ctx.Err() != nil {
			return
		}
		if time.Since(began) > retryMax {
			pause = retry
		}
		slog.Error("hosted agent failed", "agent", e.self.ID, "err", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMax)
	}
}
