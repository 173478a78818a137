//go:build e2e

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// blind is a site with two relays that must never be on together. Their states are in files, which
// stand for pins that can be read or moved by hand.
type blind struct {
	*harness.Site
	dir string
}

func startBlind(t *testing.T) *blind {
	t.Helper()
	b := &blind{dir: harness.TempDir(t)}
	config := "site: { name: blind }\ndevices:\n"
	for _, name := range []string{"up", "down"} {
		config += fmt.Sprintf("  %s: { driver: sim, model: relay, min_off: 0s, interlock: { group: blind, gap: 1s }, outputs_file: %s }\n", name, b.file(name))
	}
	b.Site = harness.Start(t, config, harness.Need(t, "the program", harness.Program))
	return b
}

func (b *blind) file(name string) string { return filepath.Join(b.dir, name) }

func (b *blind) shows(name string) string {
	value, _ := harness.ReadWitness(b.file(name))
	return value
}

func (b *blind) switches(t *testing.T, name string, on bool) string {
	_, answer := b.Post(t, harness.ToolCall("switch_output", fmt.Sprintf(`{"output":"%s/relay","on":%v,"for_seconds":60}`, name, on)), "Mcp-Name", "switch_output")
	return answer
}

func (b *blind) on(t *testing.T, name string) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, name+" switches", func() bool { return strings.Contains(b.switches(t, name, true), `"seconds_left":`) })
	if b.shows(name) != "on" {
		t.Fatalf("%s is not on", name)
	}
}

// says waits until a tool's answer or a command's output has all of these words.
func says(t *testing.T, what string, ask func() string, words ...string) {
	t.Helper()
	answer := ""
	defer func() {
		if t.Failed() {
			t.Logf("%s said last: %s", what, answer)
		}
	}()
	harness.WaitFor(t, 20*time.Second, fmt.Sprintf("%s says %q", what, words), func() bool {
		answer = ask()
		for _, w := range words {
			if !strings.Contains(answer, w) {
				return false
			}
		}
		return true
	})
}

// TestUnsafeWrite: a failed write to safe is a visible fault, and its partner stays where it is.
// The guard drives the output to safe until it is there.
func TestUnsafeWrite(t *testing.T) {
	b := startBlind(t)
	b.on(t, "up")
	if err := os.Mkdir(b.file("up.new"), 0o700); err != nil { // in the way of the next write
		t.Fatal(err)
	}
	read := func() string {
		_, answer := b.Post(t, harness.ToolCall("read_points", `{"points":["up/relay"]}`))
		return answer
	}
	command := func() string { out, _ := b.CLI(t, "read", "up/relay"); return out }
	if _, answer := b.Post(t, harness.ToolCall("release_output", `{"output":"up/relay"}`), "Mcp-Name", "release_output"); !strings.Contains(answer, `"isError":true`) || !strings.Contains(answer, "up/relay did not follow") {
		t.Errorf("a release that did nothing is answered %s", answer)
	}
	says(t, "read_points", read, `"quality":"fault"`, "cannot be written")
	says(t, "agentsite read", command, "fault", "cannot be written")
	for range 3 {
		if answer := b.switches(t, "down", true); !strings.Contains(answer, "interlocked with up/relay") || b.shows("down") != "off" {
			t.Fatalf("its partner is %s: %s", b.shows("down"), answer)
		}
		time.Sleep(time.Second) // longer than the gap
	}
	if b.shows("up") != "on" {
		t.Fatal("nobody could write, and it is off: this shows nothing")
	}
	if err := os.Remove(b.file("up.new")); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	harness.WaitFor(t, 10*time.Second, "it is safe", func() bool { return b.shows("up") == "off" })
	t.Logf("safe %v after it could be written again", time.Since(begun).Round(time.Millisecond))
	says(t, "read_points", read, `"quality":"good"`, `"value":false`)
	b.on(t, "down")
	b.on(t, "down") // nothing has sent it back
	if b.shows("up") != "off" {
		t.Error("both are on")
	}
}

// TestReadBack: an output that somebody else moves is safe again within about a second,
// and its partner too; and everybody may know why.
func TestReadBack(t *testing.T) {
	b := startBlind(t)
	by := func(name, value string) time.Duration {
		file := b.file(name)
		if err := os.WriteFile(file+".hand", fmt.Appendf(nil, "relay %s %d\n", value, time.Now().UnixNano()), 0o644); err != nil {
			t.Fatal(err)
		}
		begun := time.Now() // it may be put right before Rename returns
		if err := os.Rename(file+".hand", file); err != nil {
			t.Fatal(err)
		}
		harness.WaitFor(t, 20*time.Second, "both are safe", func() bool {
			_, at := harness.ReadWitness(file)
			return b.shows("up") == "off" && b.shows("down") == "off" && at.After(begun)
		})
		return time.Since(begun)
	}
	down := func() string {
		_, answer := b.Post(t, strings.NewReplacer("tools/call", "resources/read", `"name":"","arguments":{}`, `"uri":"agentsite:///down/relay"`).Replace(harness.ToolCall("", "{}")),
			"Mcp-Method", "resources/read", "Mcp-Name", "agentsite:///down/relay")
		return answer
	}
	var partner, own []time.Duration
	for range 5 {
		partner = append(partner, harness.CheckDeadline(t, 1500*time.Millisecond, func() time.Duration {
			b.on(t, "down")
			return by("up", "on")
		}))
		says(t, "the resource", down, "of its interlock")
		own = append(own, harness.CheckDeadline(t, 1500*time.Millisecond, func() time.Duration {
			b.on(t, "down")
			return by("down", "off")
		}))
		says(t, "the resource", down, "did not follow")
	}
	harness.LogDurations(t, "its partner switched on by somebody else, to safe", partner)
	harness.LogDurations(t, "switched off by somebody else, to known", own)
	if !strings.Contains(b.Log.String(), "down/relay: ") {
		t.Errorf("the log does not say so:\n%s", b.Log)
	}
}
