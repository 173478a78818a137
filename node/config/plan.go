package config

import "strings"

// Plan returns a file of the site with these devices only, for the guard's process. Comments
// and places are lost: equal devices make equal plans.
func Plan(s *Site, devices []Device) []byte {
	site := []entry{{key: "name", value: &node{shape: scalar, text: s.Name}}}
	if s.Watchdog != "" {
		site = append(site, entry{key: "watchdog", value: &node{shape: scalar, text: s.Watchdog}})
	}
	var all []entry
	for _, d := range devices {
		all = append(all, entry{key: d.Name, value: &node{shape: mapping, entries: d.entries}})
	}
	var b strings.Builder
	writeEntries(&b, []entry{
		{key: "site", value: &node{shape: mapping, entries: site}},
		{key: "devices", value: &node{shape: mapping, entries: all}},
	}, "")
	return []byte(b.String())
}
