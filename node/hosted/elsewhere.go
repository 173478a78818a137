package hosted

import (
	"slices"
	"strings"

	"agentsite/agents/agent"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/config"
)

// elsewhere checks the agents that stand for other sites, and what the others ask of those. The
// permission of such an agent is in the words of its site: here it is one for the site's points by
// the agent's name.
func elsewhere(cfg *config.Site, all []*entry) (errs []error) {
	var sites []string
	for _, e := range all {
		if _, ok := e.agent.(agent.Elsewhere); !ok {
			continue
		}
		if slices.ContainsFunc(cfg.Devices, func(d config.Device) bool { return d.Name == e.Name }) {
			errs = append(errs, e.Errorf("kind", "a device has this name, too, so that nobody could tell their points apart; choose another one for the site"))
		}
		if strings.TrimSpace(e.May) == "" {
			errs = append(errs, e.Errorf("kind", "may: is missing; write what your agents may ask of that site, in its words, such as may: read *, set house/heater max 5m"))
		}
		sites = append(sites, e.Name)
		there, err := access.At(e.Name, e.may)
		if err != nil {
			errs = append(errs, e.Errorf("may", "may: %w", err))
		}
		e.may = there
	}
	for _, e := range all {
		if _, ok := e.agent.(agent.Elsewhere); ok {
			continue
		}
		for _, p := range e.may {
			for _, pattern := range p.Points {
				site, _, _ := strings.Cut(pattern, "/")
				if p.AtOtherSite(pattern) && !slices.Contains(sites, site) {
					errs = append(errs, e.Errorf("may", "%s is of the site %.40q, which is not under agents: with kind: remote%s", pattern, site, device.Suggest(site, sites, "site")))
				}
			}
		}
	}
	return errs
}

// links returns what the agents ask of other sites.
func links(all []*entry) (links []agent.Link) {
	for _, of := range all {
		far, ok := of.agent.(agent.Elsewhere)
		if !ok {
			continue
		}
		peer, addresses := far.Elsewhere()
		most := words(access.Elsewhere(of.Name, of.may))
		for _, e := range all {
			if may := access.Elsewhere(of.Name, e.may); e != of && may != nil {
				links = append(links, agent.Link{
					Site: of.Name, Peer: peer, Addresses: addresses, Agent: e.self.ID, Most: most, May: words(may),
				})
			}
		}
	}
	return links
}

// words returns permissions as the other site is told them. What an owner of this site confirms is
// confirmed here, and the other site asks its own only where its grant says so.
func words(all []access.Permission) string {
	all = slices.Clone(all)
	for i := range all {
		all[i].Confirm = false
	}
	return access.FormatPermissions(all)
}
