package main

import (
	"strings"
	"sync"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	ownerclient "agentsite/transport/owner/client"
)

// knownNames returns what the user calls the holders of keys, by did:key: themselves, their agents, and sites.
var knownNames = sync.OnceValue(func() map[string]string {
	names := make(map[string]string)
	if user, err := peer.User(); err == nil {
		known, _ := user.Contacts().List()
		for _, k := range known {
			names[k.DID] = "the site " + k.Name
		}
	}
	if me, err := peer.KnownIdentity(); err == nil && me.DID != "" {
		names[me.DID] = "you"
	}
	yours, _ := peer.Agents()
	for _, mine := range yours {
		names[mine.DID] = "your agent " + mine.Name
	}
	return names
})

// called returns a caller's name where the user knows its key, and else the caller as it is.
func called(who string) string {
	if name := knownNames()[who]; name != "" {
		return name
	}
	return who
}

// allCalled returns the chain of callers behind who. It names only the asker of a task, which the site adds
// to the chain. Callers write the other keys, and nothing proves them.
func allCalled(who string, chain []string) (all []string) {
	all = append(all, chain...)
	last := len(all) - 1
	if last < 1 || !isHosted(who) || !strings.HasPrefix(all[last], "task/") {
		return all
	}
	asker := last - 1
	if asker > 0 && principal.Parse(all[asker]).Kind == principal.Unknown { // the name of the asker before it
		asker--
	}
	all[asker] = called(all[asker])
	return all
}

// isHosted reports whether a caller is an agent of the site.
func isHosted(who string) bool { return principal.Parse(who).Kind == principal.Hosted }

// withNames returns the answer with the names of the keys that the user knows.
func (w why) withNames() why {
	if w.Output != nil {
		o := *w.Output
		w.Via = allCalled(o.Holder, w.Via)
		if name := called(o.Holder); name != o.Holder {
			o.Holder, w.Name = name, ""
		}
		w.Output = &o
	}
	w.Changes = append([]agents.Event{}, w.Changes...)
	for i := range w.Changes {
		d := &w.Changes[i]
		d.Via = allCalled(d.By, d.Via)
		d.Holder, d.By = called(d.Holder), called(d.By)
	}
	return w
}

// holderName returns the name of a grant's holder that the user or the site's owners know, "" for none.
func holderName(all ownerclient.Access, g acts.Granted) string {
	if name := knownNames()[g.To]; name != "" {
		return name
	}
	for _, o := range all.Owners {
		if o.DID == g.To && device.CheckName(o.Name) == nil {
			return "owner " + o.Name
		}
	}
	if device.CheckName(g.Name) == nil {
		return "key " + g.Name
	}
	return ""
}
