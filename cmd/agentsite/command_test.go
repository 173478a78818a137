package main

import (
	"strings"
	"testing"
)

// TestSpelling: a flag without its dashes, a time without its flag and a value behind = are named with what to write.
func TestSpelling(t *testing.T) {
	set := new(app).setCommand()
	for args, want := range map[string]string{"a/b on for 5s": "--for", "a/b on 5s": "--for 5s", "a/b on take-over": "--take-over", "a/b=on": "a/b on", "a/b": "VALUE", "a/b on x": `"x"`} {
		if err := set.Args(set, strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
