package config

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/device/driver"
)

// Entry is a device to be written into a file: its name and its keys in braces.
type Entry struct{ Name, YAML string }

// Add writes devices into the text of a file, after those that are there, and
// changes nothing else: comments, order and line ends stay. An empty text becomes a
// file of the site called name. The result is checked; an error says why it would
// not be a good file, and comes with no text.
func Add(file string, text []byte, name string, devices []Entry, drivers []driver.Driver) ([]byte, error) {
	if len(text) == 0 {
		text = fmt.Appendf(nil, "site: { name: %s }\n", name)
	}
	root, src, err := parseTree(file, text)
	if err != nil {
		return nil, err
	}
	before, err := Parse(file, text, drivers)
	if err != nil {
		return nil, err
	}
	end := "\n"
	if strings.Contains(string(text), "\r\n") {
		end = "\r\n"
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), end)+end, "\n")
	lines = lines[:len(lines)-1] // what is after the last end
	at, indent := len(lines), "  "
	section, written := find(root.entries, "devices")
	switch {
	case !written:
		lines = append(lines, "devices:"+end)
		at++
	case section.value.shape == mapping && (len(section.value.entries) == 0 || section.value.entries[0].at.line == section.at.line):
		return nil, src.errorf(section.at, "the devices stand in braces; give each a line of its own, and they can be added to")
	default:
		if section.value.shape == mapping {
			indent = strings.Repeat(" ", section.value.entries[0].at.column-1)
		}
		at = sectionEnd(root, section, src.lines, at)
	}
	var added []string
	for _, d := range devices {
		added = append(added, indent+d.Name+": "+d.YAML+end)
	}
	out := []byte(strings.Join(slices.Insert(lines, at, added...), ""))
	after, err := Parse(file, out, drivers)
	if err != nil {
		return nil, fmt.Errorf("nothing is written, because the file would not be right: %w", err)
	}
	if len(after.Devices) != len(before.Devices)+len(devices) {
		return nil, src.errorf(section.at, "nothing is written: the end of this section is not clear; add the devices by hand")
	}
	return out, nil
}

// sectionEnd is the number of lines up to the end of the section: those of the next
// one begin after it, and so do the empty lines and the comments above them.
func sectionEnd(root *node, section entry, lines []string, all int) int {
	end := all
	for _, e := range root.entries {
		if e.at.line > section.at.line {
			end = min(end, e.at.line-1)
		}
	}
	for end > section.at.line && (strings.TrimSpace(lines[end-1]) == "" || strings.HasPrefix(lines[end-1], "#")) {
		end--
	}
	return end
}
