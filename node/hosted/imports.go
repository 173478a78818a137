package hosted

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"agentsite/agents/agent"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/config"
)

// Imported is an agent that came as a bundle, and that an owner accepted.
type Imported struct {
	config.Agent
	Author string // the did:key of the bundle's signature, or the agent of the site that wrote it
}

// SetImports replaces the agents that came as bundles. They run beside those of the configuration,
// which win: an import that does not go with the configuration is left out, and List says why.
// After an error everything stays as it was.
func (m *Manager) SetImports(all []Imported) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cfg == nil { // Apply comes later
		m.imports = all
		return nil
	}
	return m.apply(m.cfg, all)
}

// Define checks an agent that came as a bundle against the configuration and the agents that
// are there, and returns what its definition says. alone leaves out whether it goes with the
// other agents.
func (m *Manager) Define(i Imported, alone bool) (Configured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := checkName(m.cfg, i.Name); err != nil {
		return Configured{}, err
	}
	others := make([]Imported, 0, len(m.imports)+1)
	for _, e := range m.all {
		if e.author != "" && e.agent != nil && e.Name != i.Name {
			others = append(others, Imported{e.Agent, e.author})
		}
	}
	cfg := m.cfg
	if alone { // of the others only those that tell where other sites are
		without := *cfg
		without.Agents, others = nil, nil
		for _, e := range m.all {
			if _, ok := e.agent.(agent.Elsewhere); ok && e.author == "" {
				without.Agents = append(without.Agents, e.Agent)
			}
		}
		cfg = &without
	}
	all, err := decode(with(cfg, append(others, i)...), m.Kinds)
	if err != nil {
		return Configured{}, err
	}
	return all[len(all)-1].configured(), nil
}

// with returns the configuration with the imports behind its own agents.
func with(cfg *config.Site, imports ...Imported) *config.Site {
	both := *cfg
	both.Agents = slices.Clone(cfg.Agents)
	for _, i := range imports {
		both.Agents = append(both.Agents, i.Agent)
	}
	return &both
}

func checkName(cfg *config.Site, name string) error {
	if slices.ContainsFunc(cfg.Agents, func(a config.Agent) bool { return a.Name == name }) {
		return device.Faultf(device.Invalid, "the configuration has an agent %s; choose another name with --as", name)
	}
	return nil
}

// merge decodes a configuration with the imports that go with it; those that do not are entries
// without an agent.
func merge(cfg *config.Site, imports []Imported, kinds Kinds) ([]*entry, error) {
	all, err := decode(with(cfg, imports...), kinds)
	if err != nil || slices.ContainsFunc(imports, func(i Imported) bool { return checkName(cfg, i.Name) != nil }) {
		if all, err = decode(cfg, kinds); err != nil {
			return nil, err
		}
		var fit []Imported
		var broken []*entry
		for _, i := range imports {
			err := checkName(cfg, i.Name)
			if err == nil {
				var more []*entry
				if more, err = decode(with(cfg, append(fit, i)...), kinds); err == nil {
					all, fit = more, append(fit, i)
					continue
				}
			}
			says := firstLine(err)
			e := &entry{Agent: i.Agent, self: principal.Agent(i.Kind, i.Name)}
			e.fail(says)
			broken = append(broken, e)
		}
		all = append(all, broken...)
	}
	for _, e := range all[len(cfg.Agents):] {
		k := slices.IndexFunc(imports, func(i Imported) bool { return i.Name == e.Name })
		e.author = imports[k].Author
	}
	return all, nil
}

// firstLine returns the first mistake without the place in a file that its reader does not have.
func firstLine(err error) string {
	var mistake *config.Error
	if errors.As(err, &mistake) {
		err = mistake.Err
	}
	says, _, _ := strings.Cut(err.Error(), "\n")
	return says
}

// keepsImports refuses to end an import that works.
func (m *Manager) keepsImports(all []*entry) error {
	for _, e := range all {
		if e.agent != nil {
			continue
		}
		if slices.ContainsFunc(m.all, func(before *entry) bool { return before.Name == e.Name && before.author != "" && before.agent != nil }) {
			return device.Faultf(device.Invalid, "the imported agent %s does not go with it (%s); change that, or remove the import: agentsite agents remove %s", e.Name, e.failed.Load().says, e.Name)
		}
		slog.Error("imported agent does not run", "agent", e.self.ID, "err", e.failed.Load().says)
	}
	return nil
}
