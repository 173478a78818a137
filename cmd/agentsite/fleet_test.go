package main

import (
	"strings"
	"testing"
)

// TestEmptySelection: an empty --sites or --tag, as of a variable of a script that is not set, does not choose all
// sites.
func TestEmptySelection(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	for _, flag := range []string{"--sites", "--tag"} {
		root := newRoot()
		root.SetArgs([]string{"fleet", "backup", "x", flag, ""})
		if err := root.Execute(); exitCode(err) != exitUsage || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
