package main

import (
	"sync"

	"agentsite/agents"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
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

// allCalled is called for a chain of callers.
func allCalled(chain []string) (all []string) {
	for _, who := range chain {
		all = append(all, called(who))
	}
	return all
}

// withNames returns the answer with the names of the keys that the user knows.
func (w why) withNames() why {
	w.Via = allCalled(w.Via)
	if w.Output != nil {
		o := *w.Output
		if name := called(o.Holder); name != o.Holder {
			o.Holder, w.Name = name, ""
		}
		w.Output = &o
	}
	w.Changes = append([]agents.Event{}, w.Changes...)
	for i := range w.Changes {
		d := &w.Changes[i]
		d.Holder, d.By, d.Via = called(d.Holder), called(d.By), allCalled(d.Via)
	}
	return w
}

// holderName returns the name of a key that the user or the site's owners know, "" for none.
func holderName(all ownerclient.Access, did string) string {
	if name := knownNames()[did]; name != "" {
		return name
	}
	for _, o := range all.Owners {
		if o.DID == did && device.CheckName(o.Name) == nil {
			return "owner " + o.Name
		}
	}
	return ""
}
