package hosted

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents/agent"
	"agentsite/device"
)

// reportTimeout bounds how long List waits for all agents.
const reportTimeout = time.Second

// Agent is a hosted agent as it is now.
type Agent struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Principal string `json:"principal"`
	// Description is its owner's text about its purpose.
	Description string   `json:"description,omitzero"`
	May         string   `json:"may,omitzero"`   // as its owner wrote it
	Reads       []string `json:"reads,omitzero"` // what its definition names, as Moves
	Moves       []string `json:"moves,omitzero"`
	Author      string   `json:"author,omitzero"` // of an import: the did:key that signed it, or the agent of the site that wrote it
	// Of a draft: its definition, as its author wrote it, the points that its needs are here, and the
	// permission that its author wishes for.
	Definition string            `json:"definition,omitzero"`
	Bound      map[string]string `json:"bound,omitzero"`
	Wish       string            `json:"wish,omitzero"`
	agent.Report
	// LastError is why the agent failed last, also where it runs again, and FailedAgo how many seconds
	// ago that was.
	LastError string  `json:"last_error,omitzero"`
	FailedAgo float64 `json:"failed_ago,omitzero"`
}

// Agents are the agents of a site, in the order of its configuration.
type Agents struct {
	Agents []Agent `json:"agents"`
}

// List returns the agents in the order of the configuration. One that hangs delays no other report.
func (m *Manager) List(ctx context.Context) []Agent {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	m.mu.Lock()
	all, paused := m.all, slices.Clone(m.Paused)
	m.mu.Unlock()
	list := make([]Agent, len(all))
	var asked sync.WaitGroup
	for i, e := range all {
		asked.Go(func() { list[i] = e.describe(ctx, slices.Contains(paused, e.Name)) })
	}
	asked.Wait()
	return list
}

func (e *entry) describe(ctx context.Context, paused bool) Agent {
	a := Agent{Name: e.Name, Kind: e.Kind, Principal: e.self.ID, Description: e.Description, May: strings.TrimSpace(e.May), Reads: e.Reads, Moves: e.Moves, Author: e.author}
	down, failed := e.down.Load(), e.failed.Load() // in this order: it may fail now, for the first time
	if failed != nil {
		a.LastError, a.FailedAgo = failed.says, time.Since(failed.at).Truncate(time.Second).Seconds()
	}
	switch {
	case e.agent != nil && paused:
		a.State = agent.Paused
	case down:
		a.State, a.Says = agent.Failed, failed.says
	default:
		a.Report = e.report(ctx)
	}
	return a
}

func (e *entry) report(ctx context.Context) (said agent.Report) {
	var err error
	defer func() {
		if err != nil {
			said = agent.Report{State: agent.Failed, Says: err.Error()}
		} else if said.State == "" {
			said.State = agent.Running
		}
	}()
	defer agent.Recover(e.self.ID, &err)
	if r, ok := e.agent.(agent.Reporting); ok {
		said = r.Report(ctx)
	}
	return said
}

// Pause stops an agent until Resume, over restarts too: what it holds it releases.
func (m *Manager) Pause(name string) error {
	return m.keep(name, func(paused []string) []string { return append(paused, name) })
}

// Resume starts an agent that was paused.
func (m *Manager) Resume(name string) error {
	return m.keep(name, func(paused []string) []string { return paused })
}

// keep makes durable what change makes of the paused agents without name.
func (m *Manager) keep(name string, change func([]string) []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, e := range m.all {
		names = append(names, e.Name)
	}
	if !slices.Contains(names, name) {
		return device.Faultf(device.Invalid, "there is no agent %.60q here%s", name, device.Suggest(name, names, "agent"))
	}
	paused := change(slices.DeleteFunc(slices.Clone(m.Paused), func(other string) bool {
		return other == name || !slices.Contains(names, other)
	}))
	if err := m.Keep(paused); err != nil {
		return device.Faultf(device.Unavailable, "%s stays as it is, because the disk does not store the change: %w", name, err)
	}
	m.Paused = paused
	for _, e := range m.all {
		if r, ok := e.agent.(agent.Resumer); ok && e.Name == name && !slices.Contains(paused, name) {
			r.Resume()
		}
	}
	m.tell()
	return nil
}
