// Package hosting assembles the hosting of agents on a site: the list of kinds, their manager, and
// their tasks.
package hosting

import (
	"errors"
	"slices"

	"agentsite/agents/agent"
	"agentsite/agents/heartbeat"
	"agentsite/agents/llm"
	"agentsite/agents/mcp"
	"agentsite/agents/remote"
	"agentsite/agents/routine"
	"agentsite/agents/rule"
	"agentsite/node/config"
	"agentsite/node/hosted"
	"agentsite/transport/aios"
	"agentsite/transport/notify"
)

// kinds is the one list of the kinds of agents that a site can host. sites are the other sites that
// agents ask, nil if nothing runs. children is for agents that run other programs, models for
// language models, registry for the reporter to an AIOS registry, and told for notifications.
func kinds(w rule.World, sites *remote.Sites, children mcp.World, models *llm.World, registry aios.World, told notify.World) hosted.Kinds {
	return func(cfg *config.Site) []agent.Kind {
		w := w
		registry, told := registry, told
		w.Place, w.Holidays, registry.Site, told.Site = cfg.Place, cfg.Holidays, cfg.Name, cfg.Name
		w.Points, w.Open = cfg.Described()
		for _, a := range cfg.Agents {
			if a.Kind == remote.KindName {
				w.Open = append(w.Open, a.Name)
			}
		}
		return []agent.Kind{
			heartbeat.Kind, rule.Kind(w), routine.Kind(w), remote.Kind(sites, checkElsewhere), mcp.Kind(children),
			llm.Kind(models), aios.Kind(registry), notify.Kind(told),
		}
	}
}

// Kinds returns the kinds of agents, to describe them to people.
func Kinds() []agent.Kind {
	return kinds(rule.World{}, nil, mcp.World{}, new(llm.World), aios.World{}, notify.World{})(new(config.Site))
}

// Check checks the agents section of a configuration, makes the tests of its rules, and finds what its
// agents would be refused.
func Check(cfg *config.Site) error {
	if err := hosted.Check(cfg, kinds(rule.World{}, nil, mcp.World{}, new(llm.World), aios.World{}, notify.World{})); err != nil {
		return err
	}
	_, err := hosted.Review(cfg, kinds(rule.World{Untested: true}, nil, mcp.World{}, new(llm.World), aios.World{}, notify.World{}))
	return err
}

// Doubts returns what in a configuration that Check accepts may be a mistake.
func Doubts(cfg *config.Site) []error {
	doubts, _ := hosted.Review(cfg, kinds(rule.World{Untested: true}, nil, mcp.World{}, new(llm.World), aios.World{}, notify.World{}))
	return doubts
}

// Accept checks the agents section before a start or a reload, which wait for no tests.
func Accept(cfg *config.Site) error {
	return hosted.Check(cfg, kinds(rule.World{Untested: true}, nil, mcp.World{}, new(llm.World), aios.World{}, notify.World{}))
}

// CheckPlain refuses a child without isolation that the configuration was does not have in the same form. A
// program that runs as the site's user can only be added on the machine, in the configuration's file.
func CheckPlain(cfg, was *config.Site) error {
	var errs []error
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
