package tasks

import (
	"context"
	"slices"
	"strings"

	"agentsite/agents/task"
)

// maxPartial bounds the text of a result that is shown while it is written.
const maxPartial = 16 << 10

// Earlier implements task.Talk.
func (w *work) Earlier(ctx context.Context, most int) (all []task.Task, _ error) {
	asked := &w.j.asked
	if asked.Context == "" {
		return nil, nil
	}
	heads, err := w.m.List(ctx, w.j.asker())
	if err != nil {
		return nil, err
	}
	for i := range heads {
		h := &heads[i]
		if h.Conversation() != asked.Context || h.Agent != asked.Agent || h.Asker != asked.Asker ||
			!h.State.Ended() || w.m.isFormer(h.ID) {
			continue
		}
		if len(all) == most {
			break
		}
		t, err := w.m.Task(ctx, w.j.asker(), h.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.Reverse(all)
	return all, nil
}

// Write implements task.Talk.
func (w *work) Write(text string) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if text = strings.ToValidUTF8(text[:min(len(text), maxPartial)], ""); text != w.j.partial && !w.j.state.Ended() && w.j.stopping == nil {
		w.j.partial = text
		w.j.tell()
	}
}
