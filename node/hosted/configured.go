package hosted

import "agentsite/agents/agent"

// Configured is an agent of the configuration, whether it runs or is paused.
type Configured struct {
	Name      string
	Principal string
	Rank      int
	Agent     agent.Agent // which may be running
}

// Configured returns the agents in the order of the configuration.
func (m *Manager) Configured() (all []Configured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.all {
		all = append(all, Configured{e.Name, e.self.ID, e.Rank, e.agent})
	}
	return all
}
