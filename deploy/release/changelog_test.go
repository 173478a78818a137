package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChangelog: the repository's own is in the form that a release needs.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseChangelog(string(text))
	if err != nil || len(all) < 2 || all[0].version != "" {
		t.Fatalf("%v: %+v", err, all)
	}
}

func TestChangelogRefused(t *testing.T) {
	const good = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0-beta.1] - 2026-11-28\n\n### Added\n\n- x\n\n" +
		"## [1.0.0] - 2026-11-01\n\n### Fixed\n\n- y\n"
	if all, err := parseChangelog(good); err != nil || len(all) != 3 || all[1].version != "1.1.0-beta.1" ||
		all[2].text != "### Fixed\n\n- y" {
		t.Fatalf("%v: %+v", err, all)
	}
	for _, tt := range []struct{ was, is string }{
		{"# Changelog", "# News"}, {"[1.0.0] - 2026-11-01", "1.0.0"}, {"- 2026-11-01", ""},
		{"2026-11-01", "2026-13-01"}, {"2026-11-01", "2026-12-01"}, {"1.0.0", "1.1.0-beta.1"}, {"1.0.0", "1.0"},
		{"### Fixed", "### News"}, {"[1.0.0] - 2026-11-01", "[Unreleased]"},
	} {
		if all, err := parseChangelog(strings.Replace(good, tt.was, tt.is, 1)); err == nil {
			t.Errorf("%q for %q: %+v", tt.is, tt.was, all)
		}
	}
}

// TestChanges: the section of the released version is not empty; another one may be.
func TestChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CHANGELOG.md")
	text := "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-11-28\n\n### Added\n\n- x\n\n## [1.0.0] - 2026-11-01\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := changes("v1.1.0", file); err != nil {
		t.Error(err)
	}
	for _, version := range []string{"v1.0.0", "v1.2.0", ""} {
		if changes(version, file) == nil {
			t.Errorf("%q is released without changes", version)
		}
	}
}
