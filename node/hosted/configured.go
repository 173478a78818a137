package hosted

import (
	"slices"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/node/config"
)

// Configured is an agent of the configuration, whether it runs or is paused.
type Configured struct {
	Name      string
	Principal string
	Rank      int
	Agent     agent.Agent // which may be running
	Entry     config.Agent
	Reads     []string // what its definition names
}

func (e *entry) configured() Configured {
	return Configured{e.Name, e.self.ID, e.Rank, e.agent, e.Agent, e.Reads}
}

// Configured returns the agents in the order of the configuration, and then the imports.
func (m *Manager) Configured() (all []Configured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.all {
		if e.agent != nil {
			all = append(all, e.configured())
		}
	}
	return all
}

// Worker is an agent of the configuration that takes tasks.
type Worker struct {
	agent.Worker
	Name, Description string
	Self              agents.Principal
	Digest            [32]byte // of its definition: another for one that says anything else
	Paused            bool
}

// Workers returns the agents that take tasks, in the order of the configuration.
func (m *Manager) Workers() (all []Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.all {
		if w, ok := e.agent.(agent.Worker); ok {
			all = append(all, Worker{w, e.Name, e.Agent.Description, e.self, e.Digest(), slices.Contains(m.Paused, e.Name)})
		}
	}
	return all
}
