package a2a

import (
	"log/slog"
	"slices"

	"agentsite/agents/principal"
	"agentsite/node/quota"
	"agentsite/transport/webhook"
)

// newPushes returns those that the file has. They are watched at once.
func newPushes(s *server) *pushes {
	h := &pushes{server: s, to: webhook.NewSender(pushTimeout, s.PushHosts...), often: quota.RateLimiter{Rate: pushRate}}
	h.file = webhook.File[push]{
		Name: "push.json", What: "push notification configurations", Read: s.PushFile.Read, Write: s.PushFile.Write,
	}
	kept := h.file.Load()
	h.mu.Lock() // some end at once
	defer h.mu.Unlock()
	for _, p := range kept {
		if s.Tasks == nil || p.Config.check(h.to) != nil {
			slog.Warn("a push notification configuration ends: its host is not named any more", "task", p.Config.Task)
			continue
		}
		h.all = append(h.all, p)
		who := principal.Parse(p.Who)
		who.Owner = p.Owner
		c := &call{who: who, agent: p.Agent, tasks: s.Tasks, form: form{legacy: p.Legacy}}
		h.run(c, p, pushUnseen, nil)
		p.task <- p.Config.Task
	}
	if len(h.all) < len(kept) {
		h.save()
	}
	return h
}

// save writes the file. The lock is held.
func (h *pushes) save() error {
	return h.file.Save(slices.DeleteFunc(slices.Clone(h.all), func(p *push) bool { return p.Agent == "" }))
}
