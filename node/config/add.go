package config

import (
	"fmt"
	"slices"
	"strings"

	"agentsite/device/driver"
)

// Entry is a device to add to a file: its name and its keys in braces.
type Entry struct{ Name, YAML string }

// Add inserts devices into the text of a file, after the present ones, and changes nothing
// else: comments, order and line ends stay. An empty text becomes a file of the site called
// name. Add parses the result, and returns an error and no text where that fails.
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
	lines = lines[:len(lines)-1] // empty, after the last end
	at, indent := len(lines), "  "
	section, written := find(root.entries, "devices")
	switch {
	case !written:
		lines = append(lines, "devices:"+end)
		at++
	case section.value.shape == mapping && (len(section.value.entries) == 0 || section.value.entries[0].at.line == section.at.line):
		return nil, src.errorf(section.at, "the devices are in braces, so that none can be added; give each a line of its own")
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
		return nil, fmt.Errorf("nothing is written, because the file would be wrong: %w", err)
	}
	if len(after.Devices) != len(before.Devices)+len(devices) {
		return nil, src.errorf(section.at, "nothing is written, because the end of this section is not clear; add the devices by hand")
	}
	return out, nil
}

// sectionEnd returns the number of lines up to the end of the section, without the empty
// lines and comments before the next one.
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
