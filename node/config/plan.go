package config

import "strings"

// Plan returns a file of the site with these devices only, for the guard's process. Comments
// and places are lost: equal devices make equal plans. ParsePlan parses it.
func Plan(s *Site, devices []Device) []byte {
	site := []entry{scalarEntry("name", s.Name, pos{})}
	if s.Watchdog != "" {
		site = append(site, scalarEntry("watchdog", s.Watchdog, pos{}))
	}
	var all []entry
	for _, d := range devices {
		all = append(all, entry{key: d.Name, value: &node{shape: mapping, entries: d.entries}})
	}
	var b strings.Builder
	if s.Simulated {
		b.WriteString(simulation + ": on\n")
	}
	writeEntries(&b, []entry{
		{key: "site", value: &node{shape: mapping, entries: site}},
		{key: "devices", value: &node{shape: mapping, entries: all}},
	}, "")
	return []byte(b.String())
}
