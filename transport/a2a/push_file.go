package a2a

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"

	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node/quota"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
)

// pushFile is the content of the file.
type pushFile struct {
	Version int     `json:"version"`
	Pushes  []*push `json:"pushes"`
}

// newPushes returns those that the file has. They are watched at once.
func newPushes(s *server) *pushes {
	h := &pushes{server: s, hosts: make(map[string]bool), often: quota.RateLimiter{Rate: pushRate}}
	var names []string
	for _, host := range s.PushHosts {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name, port = strings.Trim(host, "[]"), "443"
		}
		h.hosts[net.JoinHostPort(name, port)] = true
		names = append(names, name)
	}
	h.client = outbound.Client(pushTimeout, names...)
	if s.PushFile.Read == nil {
		return h
	}
	var kept pushFile
	text, err := s.PushFile.Read()
	if err == nil && text != nil {
		err = json.Unmarshal(text, &kept)
	}
	if err == nil && text != nil && kept.Version != 1 {
		err = errors.New("its version is another one")
	}
	if slices.Contains(kept.Pushes, nil) {
		err = errors.New("an entry is damaged")
	}
	if err != nil {
		h.damage = device.Faultf(device.Unavailable, "the push notification configurations of this site cannot be read: its owner removes the file push.json, and starts it again")
		slog.Error("push notification configurations cannot be read; remove push.json", "err", err)
		return h
	}
	h.mu.Lock() // some end at once
	defer h.mu.Unlock()
	for _, p := range kept.Pushes {
		if s.Tasks == nil || p.Config.check(h.hosts) != nil {
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
	if len(h.all) < len(kept.Pushes) {
		h.save()
	}
	return h
}

// save writes the file. The lock is held.
func (h *pushes) save() error {
	if h.damage != nil || h.PushFile.Write == nil {
		return h.damage
	}
	kept := pushFile{1, slices.DeleteFunc(slices.Clone(h.all), func(p *push) bool { return p.Agent == "" })}
	text, err := encode(kept)
	if err == nil {
		err = h.PushFile.Write(text)
	}
	if h.unsaved = err != nil; h.unsaved {
		slog.Error("push notification configurations cannot be written", "err", err)
		return device.Faultf(device.Unavailable, "the site cannot store this now")
	}
	return nil
}
