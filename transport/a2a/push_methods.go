package a2a

import (
	"context"
	"crypto/rand"

	"agentsite/transport/rpc"
)

// own returns the caller's configurations of the task that p names, and the ID of a configuration
// that p names.
func (h *pushes) own(ctx context.Context, c *call, p *pushParams) (all []*push, id string, err error) {
	task, id := p.Task, p.ID
	if c.form.legacy {
		task, id = p.ID, p.OldID
	}
	if !h.to.On() {
		return nil, "", errNoPush
	}
	if _, err := c.task(ctx, task); err != nil {
		return nil, "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.all {
		if p.Who == c.who.ID && p.Agent == c.agent && p.Config.Task == task {
			all = append(all, p)
		}
	}
	return all, id, nil
}

// render returns a configuration for its owner, without its credentials.
func (f form) render(p *push) any {
	out := p.Config
	if out.Auth != nil {
		out.Auth = &pushAuth{Scheme: out.Auth.Scheme, Schemes: out.Auth.Schemes}
	}
	if !f.legacy {
		return out
	}
	id := out.Task
	out.Task = ""
	if f.proto {
		return legacyPush{Name: "tasks/" + id + "/pushNotificationConfigs/" + out.ID, Config: &out}
	}
	return legacyPush{Task: id, Config: &out}
}

func (h *pushes) create(ctx context.Context, c *call, p *pushParams) (any, error) {
	config := p.pushConfig
	if c.form.legacy && p.Old != nil {
		config = *p.Old
	}
	if err := config.check(h.to); err != nil {
		return nil, err
	}
	t, err := c.task(ctx, p.Task)
	switch {
	case err != nil:
		return nil, err
	case t.State.Ended():
		return nil, failf(errUnsupported, "this task has ended: ask for it")
	}
	if config.ID == "" {
		config.ID = rand.Text()
	}
	out, err := h.reserve(c, config)
	if err == nil {
		err = h.begin(out, t.ID)
	}
	if err != nil {
		return nil, err
	}
	return c.form.render(out), nil
}

// get returns a configuration; in 0.3 without its ID, the first.
func (h *pushes) get(ctx context.Context, c *call, p *pushParams) (any, error) {
	all, id, err := h.own(ctx, c, p)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Config.ID == id || c.form.legacy && id == "" {
			return c.form.render(p), nil
		}
	}
	return nil, failf(errTaskNotFound, "you have no such push notification configuration for this task")
}

func (h *pushes) list(ctx context.Context, c *call, p *pushParams) (any, error) {
	all, _, err := h.own(ctx, c, p)
	if err != nil {
		return nil, err
	}
	out := pushList{[]any{}}
	for _, p := range all {
		out.Configs = append(out.Configs, c.form.render(p))
	}
	if c.form.plain() {
		return out.Configs, nil
	}
	return out, nil
}

func (h *pushes) delete(ctx context.Context, c *call, p *pushParams) (any, error) {
	all, id, err := h.own(ctx, c, p)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Config.ID == id {
			h.drop(p)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file.Unsaved() { // the file still has it
		if err := h.save(); err != nil {
			return nil, err
		}
	}
	if c.form.plain() {
		return rpc.RawJSON([]byte("null")), nil
	}
	return struct{}{}, nil
}
