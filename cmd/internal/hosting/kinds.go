// Package hosting assembles the hosting of agents on a site: the list of kinds, their manager, and
// their tasks.
package hosting

import (
	"errors"
	"slices"
	"time"

	"agentsite/agents/agent"
	"agentsite/agents/heartbeat"
	"agentsite/agents/llm"
	"agentsite/agents/mcp"
	"agentsite/agents/power"
	"agentsite/agents/remote"
	"agentsite/agents/routine"
	"agentsite/agents/rule"
	"agentsite/node/config"
	"agentsite/node/hosted"
	"agentsite/transport/aios"
	"agentsite/transport/export"
	"agentsite/transport/mqtt"
	"agentsite/transport/notify"
	"agentsite/transport/supervisor"
)

// worlds holds the parts of the site that each kind of agent uses.
type worlds struct {
	rules    rule.World
	sites    *remote.Sites // other sites that agents ask, nil if nothing runs
	children mcp.World     // for agents that run other programs
	models   *llm.World
	registry aios.World   // for the reporter to an AIOS registry
	broker   mqtt.World   // for the bridge to an MQTT broker
	told     notify.World // for notifications
	store    export.World // for the history elsewhere

	power power.World // for the end of the machine

	home supervisor.World // for Home Assistant, of which the site is an app

	confined bool // only kinds that reach nothing outside the site
}

// IsLocal reports whether the agents of a kind reach nothing outside the site, where the stand-in answers for models.
func IsLocal(kind string) bool {
	return slices.Contains([]string{heartbeat.Kind.Name, rule.KindName, routine.KindName, llm.KindName}, kind)
}

// kinds is the one list of the kinds of agents that a site can host.
func kinds(of worlds) hosted.Kinds {
	return func(cfg *config.Site) []agent.Kind {
		w := of
		w.registry.Site, w.broker.Site, w.told.Site, w.store.Site = cfg.Name, cfg.Name, cfg.Name, cfg.Name
		w.store.Raw = time.Duration(cfg.History.Raw)
		w.rules.Place, w.rules.Holidays = cfg.Place, cfg.Holidays
		w.rules.Points, w.rules.Open = cfg.Described()
		w.broker.Points, w.broker.Open = w.rules.Points, w.rules.Open
		w.power.Rules = w.rules // this site's points only
		for _, a := range cfg.Agents {
			if a.Kind == remote.KindName {
				w.rules.Open = append(w.rules.Open, a.Name)
			}
		}
		all := []agent.Kind{
			heartbeat.Kind, rule.Kind(w.rules), routine.Kind(w.rules), remote.Kind(w.sites, checkElsewhere),
			mcp.Kind(w.children),
			llm.Kind(w.models), aios.Kind(w.registry), mqtt.Kind(w.broker), notify.Kind(w.told), export.Kind(w.store),
			supervisor.Kind(w.home), power.Kind(w.power),
		}
		if w.confined {
			all = slices.DeleteFunc(all, func(k agent.Kind) bool { return !IsLocal(k.Name) })
		}
		return all
	}
}

// described are the kinds where nothing runs: to describe them, and to check what is written of them. The
// tests of rules are not made if untested is set.
func described(untested bool) hosted.Kinds {
	return kinds(worlds{rules: rule.World{Untested: untested}, models: new(llm.World)})
}

// Kinds returns the kinds of agents, to describe them to people.
func Kinds() []agent.Kind { return described(false)(new(config.Site)) }

// Check checks the agents section of a configuration, makes the tests of its rules, and finds what its
// agents would be refused.
func Check(cfg *config.Site) error {
	if err := hosted.Check(cfg, described(false)); err != nil {
		return err
	}
	_, err := hosted.Review(cfg, described(true), nil)
	return err
}

// Doubts returns what in a configuration that Check accepts may be a mistake. file is where it is, or is to be; "" for
// nowhere.
func Doubts(cfg *config.Site, file string) []error {
	var secret func(string) (string, error)
	if file != "" {
		secret = secrets(file)
	}
	doubts, _ := hosted.Review(cfg, described(true), secret)
	return append(cfg.Doubts(), doubts...)
}

// Configured returns the agents of a configuration, of which none runs. Their tests are not made.
func Configured(cfg *config.Site) ([]hosted.Configured, error) {
	return hosted.Decode(cfg, described(true))
}

// Accept checks the agents section before a start or a reload, which wait for no tests.
func Accept(cfg *config.Site) error { return hosted.Check(cfg, described(true)) }

// CheckPlain refuses a child without isolation, and a device with files elsewhere, that the configuration was does
// not have in the same form. A program that runs as the site's user, and what that user's files have, can only be added
// on the machine, in the configuration's file.
func CheckPlain(cfg, was *config.Site) error {
	var errs []error
	for _, d := range cfg.Devices {
		if !slices.ContainsFunc(was.Devices, d.Same) {
			errs = append(errs, d.FilesElsewhere()...)
		}
	}
	for _, a := range cfg.Agents {
		if a.Kind != mcp.KindName || slices.ContainsFunc(was.Agents, a.Same) {
			continue
		}
		child := mcp.New(mcp.World{})
		if err := a.Decode(child); err != nil {
			errs = append(errs, err)
		} else if child.Isolation != "" {
			errs = append(errs, a.Errorf("isolation", "it would run a program as the site's own user: write it to the file on the site's machine, and run agentsite reload there"))
		}
	}
	return errors.Join(errs...)
}

// Supervise is mcp.Supervise.
func Supervise(program string, command []string) error { return mcp.Supervise(program, command) }
