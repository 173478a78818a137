package hosted

import (
	"slices"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
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

// Decode returns the agents of a configuration, of which none runs.
func Decode(cfg *config.Site, kinds Kinds) (all []Configured, err error) {
	entries, err := decode(cfg, kinds)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		all = append(all, e.configured())
	}
	return all, nil
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
	Tags              []string // of all its skills, besides their own
	Self              agents.Principal
	Digest            [32]byte // of its definition: another for one that says anything else
	Paused            bool
}

// Tagged returns the agent's skills with its own tags.
func (w Worker) Tagged() []task.Skill {
	all := slices.Clone(w.Skills())
	for i := range all {
		for _, tag := range w.Tags {
			if !slices.Contains(all[i].Tags, tag) {
				all[i].Tags = append(slices.Clip(all[i].Tags), tag)
			}
		}
	}
	return all
}

// Listed returns what the site announces of its agents, as kinds and names: agent/KIND, and
// skill/TAG for each tag, sorted. It is nothing but what the configuration lists, and nothing of
// agents that are paused.
func (m *Manager) Listed() (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.all {
		w, ok := e.agent.(agent.Worker)
		if !ok || !e.Agent.Listed || slices.Contains(m.Paused, e.Name) {
			continue
		}
		all = append(all, "agent/"+e.Kind)
		for _, s := range (Worker{Worker: w, Tags: e.Agent.Tags}).Tagged() {
			for _, tag := range s.Tags {
				if task.IsTag(tag) {
					all = append(all, "skill/"+tag)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Workers returns the agents that take tasks, in the order of the configuration.
func (m *Manager) Workers() (all []Worker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.all {
		if w, ok := e.agent.(agent.Worker); ok {
			all = append(all, Worker{w, e.Name, e.Agent.Description, e.Agent.Tags, e.self, e.Digest(), slices.Contains(m.Paused, e.Name)})
		}
	}
	return all
}
