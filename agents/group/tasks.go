package group

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// taker is a site whose agents take tasks.
type taker interface{ Tasks() task.Host }

// Tasks are the tasks of the agents of all sites. An agent is called site/agent, and a task site/ID.
// The question and the result of a task are returned as the site wrote them, since its asker requested
// them. Its other texts are cleaned as in all answers.
type Tasks struct{ group *Group }

var _ task.Host = Tasks{}

// Tasks returns the tasks of the sites' agents.
func (g *Group) Tasks() task.Host { return Tasks{g} }

// Agents returns the agents that the sites named last, without asking them. Those of sites that are
// away are left out, unless all of them are.
func (h Tasks) Agents(context.Context, agents.Principal) ([]task.Agent, error) {
	h.group.list()
	h.group.mu.Lock()
	defer h.group.mu.Unlock()
	var all, had []task.Agent
	for _, m := range h.group.ordered() {
		for _, a := range m.agents {
			a.Name = m.name + "/" + a.Name
			if had = append(had, a); m.offer != nil {
				all = append(all, a)
			}
		}
	}
	if len(all) == 0 {
		return had, nil
	}
	return all, nil
}

func (h Tasks) Ask(ctx context.Context, _ agents.Principal, r task.Request) (task.Task, error) {
	m, there, err := h.find("agent", r.Agent)
	if err != nil {
		return task.Task{}, err
	}
	return m.task(ctx, call{op: agents.OpAsk, points: []string{there}, terms: r.Terms}, func(ctx context.Context, at task.Host, terms agents.Terms) (task.Task, error) {
		r.Agent, r.Terms = there, terms
		return at.Ask(ctx, agents.Principal{}, r)
	})
}

// Task implements task.Host. Results of steps are left out.
func (h Tasks) Task(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return h.about(ctx, id, agents.Reads, func(ctx context.Context, at task.Host, there string) (task.Task, error) {
		return at.Task(ctx, agents.Principal{}, there)
	})
}

// List leaves out the tasks of a site that does not answer, and questions: a site may list tasks that
// nobody asked for. Those that have not ended come first. The newest of each site come first, then the
// second of each, so that a site with many hides none of another.
func (h Tasks) List(ctx context.Context, _ agents.Principal) ([]task.Task, error) {
	h.group.list()
	var to []part
	for _, m := range h.group.all() {
		if _, takes := m.site.(taker); takes && len(m.taking()) > 0 {
			to = append(to, part{to: m})
		}
	}
	var rows [][]task.Task
	_, err := together(ctx, call{op: agents.OpAsk, effect: agents.Reads}, to, len(to) == 1, func(ctx context.Context, s agents.Site, _ call) ([]task.Task, error) {
		return s.(taker).Tasks().List(ctx, agents.Principal{})
	}, func(m *member, answer []task.Task) error {
		answer = cleanList(m.name, answer, cleanTask)
		task.Sort(answer)
		for i, t := range answer {
			if t.Question, t.Result, t.Steps = nil, nil, nil; i == len(rows) {
				rows = append(rows, nil)
			}
			rows[i] = append(rows[i], t)
		}
		return nil
	})
	for _, row := range rows {
		slices.SortStableFunc(row, func(a, b task.Task) int { return cmp.Compare(b.Created, a.Created) })
	}
	all := slices.Concat(rows...)
	slices.SortStableFunc(all, task.LiveFirst)
	return all, err
}

// Watch implements task.Host. It takes no place among the calls to the site, for it may be long, and
// ends with an error when the site goes away; the task goes on.
func (h Tasks) Watch(ctx context.Context, _ agents.Principal, id string, emit func(task.Task) error) error {
	m, there, err := h.find("task", id)
	if err != nil {
		return err
	}
	reaching, cancel := context.WithTimeout(ctx, reach)
	_, err = m.reached(reaching)
	cancel()
	if err != nil {
		return err
	}
	c := call{op: agents.OpAsk, effect: agents.Reads}
	var ours error // ends the watch, whatever the site says
	err = m.site.(taker).Tasks().Watch(ctx, agents.Principal{}, there, func(t task.Task) error {
		if ours = m.checkTask(c, there, &t); ours == nil {
			ours = emit(t)
		}
		return ours
	})
	switch {
	case ours != nil || err == nil:
		return ours
	case ctx.Err() != nil:
		return ctx.Err()
	}
	m.doubt(err)
	return m.failed(c, err)
}

func (h Tasks) Answer(ctx context.Context, _ agents.Principal, id, question, answer string) (task.Task, error) {
	return h.about(ctx, id, agents.Acts, func(ctx context.Context, at task.Host, there string) (task.Task, error) {
		return at.Answer(ctx, agents.Principal{}, there, question, answer)
	})
}

// Cancel implements task.Host. It waits for no place, as all that releases outputs.
func (h Tasks) Cancel(ctx context.Context, _ agents.Principal, id string) (task.Task, error) {
	return h.about(ctx, id, agents.Returns, func(ctx context.Context, at task.Host, there string) (task.Task, error) {
		return at.Cancel(ctx, agents.Principal{}, there)
	})
}

// find finds the site of an agent or a task.
func (h Tasks) find(what, here string) (m *member, there string, err error) {
	h.group.list()
	site, there, _ := strings.Cut(here, "/")
	if !taskForm().MatchString(there) {
		return nil, "", device.Faultf(device.Invalid, "%.90q is no %s here: write site/%[2]s, as ask_agent without arguments names them", here, what)
	}
	if m, err = h.group.named(site); err != nil {
		return nil, "", err
	}
	if _, takes := m.site.(taker); !takes {
		return nil, "", device.Faultf(device.Denied, "%s takes no tasks", m.name)
	}
	return m, there, nil
}

// about calls the site of a task.
func (h Tasks) about(ctx context.Context, id string, effect agents.Effect, do func(ctx context.Context, at task.Host, there string) (task.Task, error)) (task.Task, error) {
	m, there, err := h.find("task", id)
	if err != nil {
		return task.Task{}, err
	}
	return m.task(ctx, call{op: agents.OpAsk, effect: effect}, func(ctx context.Context, at task.Host, _ agents.Terms) (task.Task, error) {
		t, err := do(ctx, at, there)
		if err == nil && t.ID != there {
			t = task.Task{}
		}
		return t, err
	})
}

// task makes a call that is answered with a task, and cleans that.
func (m *member) task(ctx context.Context, c call, do func(context.Context, task.Host, agents.Terms) (task.Task, error)) (task.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := ask(ctx, m, c, reach, func(ctx context.Context, s agents.Site, c call) (task.Task, error) {
		return do(ctx, s.(taker).Tasks(), c.terms)
	})
	if err == nil {
		err = m.checkTask(c, t.ID, &t)
	}
	if err != nil {
		return task.Task{}, err
	}
	return t, nil
}

// checkTask cleans the task of that ID, and refuses any other.
func (m *member) checkTask(c call, id string, t *task.Task) error {
	if t.ID != id || !cleanTask(m.name, t) {
		return m.unexpected(c)
	}
	return nil
}

// maxAgents bounds the agents of a site, as our own sites do. All models of the group read their list,
// so maxAgentText bounds its skills and schemas in bytes; each skill counts skillText in addition.
const maxAgents, maxAgentText, skillText = 64, 64 << 10, 64

// askAgents returns the agents of the site that take tasks, or the earlier ones if the request
// fails.
func (m *member) askAgents(ctx context.Context) []task.Agent {
	t, takes := m.site.(taker)
	if !takes {
		return nil
	}
	all, err := t.Tasks().Agents(ctx, agents.Principal{})
	if err != nil {
		return m.taking()
	}
	left, names := maxAgentText, make(map[string]bool)
	return cleanList(m.name, all, func(site string, a *task.Agent) bool {
		if len(names) == maxAgents || !cleanAgent(site, a) || names[a.Name] {
			return false
		}
		names[a.Name] = true
		a.Skills = slices.DeleteFunc(a.Skills, func(s task.Skill) bool {
			left -= skillText + len(s.Input)
			return left < 0
		})
		return true
	})
}

// taking returns the agents of the site that took tasks when it was asked last.
func (m *member) taking() []task.Agent {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.agents
}
