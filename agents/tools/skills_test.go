package tools_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/agents/skill"
	"agentsite/agents/tools"
)

var (
	fenced = regexp.MustCompile("(?s)```.*?```")
	code   = regexp.MustCompile("`([^`]+)`")
	word   = regexp.MustCompile(`[a-z]+(?:_[a-z]+)+`)
)

// elsewhere are the words of skills that are in no tool's schema: keys of the configuration, which cmd/agentsite
// tries, and members of explain_point's and site_status' answers, which these have without a schema.
var elsewhere = []string{"active_low", "max_on", "min_off", "required_by", "used_by", "unknown_outcome", tools.AskAgent}

// TestSkillWords: the tools, arguments and members of answers that the skills name exist.
func TestSkillWords(t *testing.T) {
	schema, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range skill.BuiltIn() {
		for _, m := range code.FindAllStringSubmatch(fenced.ReplaceAllString(s.Text, ""), -1) {
			for _, w := range word.FindAllString(m[1], -1) {
				if strings.Contains(m[1], "/") || strings.HasPrefix(m[1], "agentsite ") {
					continue
				}
				n++
				if !strings.Contains(string(schema), `"`+w+`"`) && !slices.Contains(elsewhere, w) {
					t.Errorf("%s: there is no %s", s.Name, w)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d words were found", n)
	}
}
