package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentsite/agents/skill"
	"agentsite/cmd/internal/site"
)

var (
	commandInText = regexp.MustCompile("`agentsite ([^`]+)`")
	yamlInText    = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// TestSkills: the commands in the skills exist, and their configurations pass check without a warning, with the rules'
// tests.
func TestSkills(t *testing.T) {
	var commands, configurations int
	for _, s := range skill.BuiltIn() {
		for _, m := range commandInText.FindAllStringSubmatch(s.Text, -1) {
			commands++
			checkSuggestion(t, s.Name, m[1])
			parses(t, strings.Fields(m[1]))
		}
		for _, m := range yamlInText.FindAllStringSubmatch(s.Text, -1) {
			configurations++
			file := filepath.Join(t.TempDir(), "agentsite.yaml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, _, err := site.CheckFile(file)
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			for _, doubt := range site.Doubts(cfg, file) {
				t.Errorf("%s: %v", s.Name, doubt)
			}
		}
	}
	if commands < 15 || configurations != 2 {
		t.Errorf("%d commands, %d configurations", commands, configurations)
	}
}
