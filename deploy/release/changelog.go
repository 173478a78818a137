package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// section is a version of the changelog.
type section struct {
	version string // without v; "" for unreleased changes
	date    string
	text    string
}

const versionForm = `\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.\d+)?`

var (
	headings = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^## \[(Unreleased|` + versionForm + `)\](?: - (\d{4}-\d{2}-\d{2}))?$`)
	})
	kinds = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
)

// parseChangelog reads a changelog in the form of keepachangelog.com 1.1.0, newest version first.
func parseChangelog(text string) ([]section, error) {
	if !strings.HasPrefix(text, "# Changelog\n") {
		return nil, fmt.Errorf("line 1: it begins with %q", "# Changelog")
	}
	var all []section
	for n, line := range strings.Split(text, "\n") {
		kind, isKind := strings.CutPrefix(line, "### ")
		switch {
		case strings.HasPrefix(line, "## "):
			m := headings().FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("line %d: write ## [1.2.3] - 2026-11-28 or ## [Unreleased], not %q", n+1, line)
			}
			s := section{version: m[1], date: m[2]}
			_, err := time.Parse(time.DateOnly, s.date)
			switch {
			case s.version == "Unreleased" && (len(all) > 0 || s.date != ""):
				return nil, fmt.Errorf("line %d: Unreleased is the first section, and has no date", n+1)
			case s.version == "Unreleased":
				s.version = ""
			case err != nil:
				return nil, fmt.Errorf("line %d: %s has no date such as 2026-11-28", n+1, s.version)
			case slices.ContainsFunc(all, func(o section) bool { return o.version == s.version }):
				return nil, fmt.Errorf("line %d: a second section for %s", n+1, s.version)
			case len(all) > 0 && all[len(all)-1].version != "" && s.date > all[len(all)-1].date:
				return nil, fmt.Errorf("line %d: %s is newer than the section above it: the newest is first",
					n+1, s.version)
			}
			all = append(all, s)
		case isKind && !slices.Contains(kinds, kind):
			return nil, fmt.Errorf("line %d: the headings of a version are %s, not %q",
				n+1, strings.Join(kinds, ", "), kind)
		case len(all) > 0:
			all[len(all)-1].text += line + "\n"
		}
	}
	for n := range all {
		all[n].text = strings.TrimSpace(all[n].text)
	}
	return all, nil
}

// changes prints what a version changes.
func changes(version, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, err := parseChangelog(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, s := range all {
		if s.version == strings.TrimPrefix(version, "v") && s.version != "" {
			if !strings.Contains(s.text, "\n- ") {
				return fmt.Errorf("%s: the section of %s says nothing: write ### Added and a list below it", file, s.version)
			}
			fmt.Println(s.text)
			return nil
		}
	}
	return fmt.Errorf("%s has no section for %s: write ## [%s] - DATE, and what it changes for its users",
		file, version, strings.TrimPrefix(version, "v"))
}
