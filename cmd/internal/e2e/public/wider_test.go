//go:build e2e

package public

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
)

// TestWider: a client that cannot ask for more reads why it is refused, the owner pastes the command that the site
// shows them, and the same connection is told of the tool and may call it. A narrower permission returns what it holds
// to safe.
func TestWider(t *testing.T) {
	// 2.x asks for words that it lacks.
	for major, may := range map[string]string{"1": "read *", "2": "read *, set attic"} {
		t.Run(major, func(t *testing.T) {
			p := newPlace(t)
			c := p.client(t, major, "listen")
			c.must(t, "connect", may, 1)
			if v := c.must(t, "list", "", 0); !slices.Contains(v["tools"].([]any), any("switch_output?")) {
				t.Error(v)
			}
			const hold = `call switch_output {"output":"box/relay","on":true,"for_seconds":120}`
			for range 2 {
				v := c.must(t, hold, "", 0)
				if v["isError"] != true || !strings.Contains(v["content"].([]any)[0].(map[string]any)["text"].(string), "owner") {
					t.Fatal(v)
				}
			}
			listed := p.widen(t)
			if !strings.Contains(listed, "'"+may+", set box/relay max 2m'") || !strings.Contains(listed, "2 times") {
				t.Fatal(listed)
			}
			if v := c.must(t, "changed", "", 0); !slices.Contains(v["tools"].([]any), any("switch_output")) {
				t.Error(v)
			}
			if v := c.must(t, hold, "", 0); v["isError"] == true {
				t.Fatal(v)
			}
			if listed := p.owner(t, "approve"); strings.Contains(listed, "token change") {
				t.Error(listed)
			}
			on := regexp.MustCompile(`box/relay +on`)
			if held := p.owner(t, "read", "box/relay"); !on.MatchString(held) {
				t.Error(held)
			}
			p.owner(t, "token", "change", "sdk-"+major, may)
			if held := p.owner(t, "read", "box/relay"); on.MatchString(held) {
				t.Error(held)
			}
			if v := c.must(t, hold, "", 0); v["isError"] != true {
				t.Error(v)
			}
			if v := c.must(t, "changed", "", 0); !slices.Contains(v["tools"].([]any), any("switch_output?")) {
				t.Error(v)
			}
			deny := regexp.MustCompile(`(?m)^  (agentsite .*approve .* --deny)$`).FindStringSubmatch(p.owner(t, "approve"))
			if deny == nil {
				t.Fatal("the owner is not asked again")
			}
			p.paste(t, deny[1])
			if v := c.must(t, hold, "", 0); v["isError"] != true {
				t.Error(v)
			}
			if listed := p.owner(t, "approve"); strings.Contains(listed, "--deny") {
				t.Error("an owner said no:", listed)
			}
		})
	}
}

var widens = regexp.MustCompile(`(?m)^  (agentsite .*token change .*)$`)

// widen pastes the command by which a call that was refused is allowed. It returns what the owner read.
func (p *place) widen(t *testing.T) (listed string) {
	t.Helper()
	listed = p.owner(t, "approve")
	command := widens.FindStringSubmatch(listed)
	if command == nil {
		t.Fatalf("the owner is not asked: %s\n%s", listed, p.Log)
	}
	p.paste(t, command[1])
	return listed
}

// paste has a shell run a command of the owner's.
func (p *place) paste(t *testing.T, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(harness.Program)+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
