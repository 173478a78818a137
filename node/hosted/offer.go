package hosted

import (
	"context"
	"slices"

	"agentsite/agents/agent"
	"agentsite/agents/tools"
	"agentsite/device"
)

// Offered returns the tools that another program offers by an agent, and the accepted ones.
func (m *Manager) Offered(ctx context.Context, name string) (agent.Offer, error) {
	o, err := m.offering(name)
	if err != nil {
		return agent.Offer{}, err
	}
	return o.Offered(ctx)
}

// AcceptOffer accepts what Offered returned with that digest.
func (m *Manager) AcceptOffer(ctx context.Context, name, digest string) error {
	o, err := m.offering(name)
	if err != nil {
		return err
	}
	return o.Accept(ctx, digest)
}

func (m *Manager) offering(name string) (agent.Offering, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, e := range m.all {
		o, ok := e.agent.(agent.Offering)
		if ok && e.Name == name {
			return o, nil
		}
		if ok {
			names = append(names, e.Name)
		}
	}
	return nil, device.Faultf(device.Invalid, "there is no agent %.60q here that offers another program's tools%s", name, device.Suggest(name, names, "agent"))
}

// Rehost tells the node again which agents offer tools: what they offer has changed.
func (m *Manager) Rehost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.host(true)
}

// host tells the node which agents offer tools: those of the configuration that are not paused.
// The caller holds mu.
func (m *Manager) host(changed bool) {
	if m.Host == nil {
		return
	}
	var all []tools.Agent
	for _, e := range m.all {
		if a, ok := e.agent.(tools.Agent); ok && !slices.Contains(m.Paused, e.Name) {
			all = append(all, a)
		}
	}
	if changed || !slices.Equal(all, m.offered) {
		m.offered = all
		m.Host(all...)
	}
}
