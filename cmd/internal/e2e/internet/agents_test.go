//go:build e2e && linux

package internet

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

var handleText = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)

const shedAgents = `agents:
  gpt: { kind: llm, model: { url: stand-in, name: script }, may: "read den+lamp, set lamp max 1m" }
  beds: { kind: routine, may: set lamp, tags: [irrigation, drip], listed: on, steps: [ { set: { lamp/relay: on }, for: 3s, wait: true } ] }
`

// TestInternetAgents: behind routers, through a relay, an agent is found by its skill and asked. It
// does for its asker only what the asker may do. Without a grant it does not answer; with a grant
// to ask, an owner approves each move; with a grant to move, too, it moves at once. The same holds
// for a model and for a routine of another site.
func TestInternetAgents(t *testing.T) {
	t.Parallel()
	w := newWay(t, "relayed", shedAgents)
	w.agents = "" // those of the shed
	config := fmt.Sprintf(`site: { name: barn }
devices: { den: { driver: sim, model: climate } }
internet: { realm: "%s", relays: ["%s"] }
agents:
  shed: { kind: remote, peer: "%s", may: "read *, set lamp max 20s, ask gpt" }
  gpt: { kind: llm, model: { url: stand-in, name: script }, may: "read shed/lamp, set shed/lamp max 20s" }
  light: { kind: routine, may: "ask shed/gpt, set shed/lamp max 20s", steps: [ { agent: shed/gpt, text: "lamp on" } ] }
`, w.realm.Realm, strings.Join(w.relay.Addresses, `", "`), w.site.DID(t))
	barn := harness.StartIn(t, harness.TempDir(t), config, nil, bed.On(w.from.Host(), harness.Program, "run", "--listen-peers", ":8475")...)
	harness.WaitFor(t, time.Minute, "the site is reached", func() bool {
		_, err := w.ann.CLI(t, w.peer, "ping", "-c1")
		return err == nil
	})
	w.ann.MustCLI(t, "claim", w.site.Invitation(t).String())

	// Found, by its owner and by somebody who may nothing there.
	other := harness.NewPerson(t)
	bob := w.laptop(t, w.from.Host(), other)
	finds := func(l harness.Laptop, want string) {
		t.Helper()
		begun := time.Now()
		harness.WaitFor(t, 2*time.Minute, "the skill is found: "+want, func() bool {
			out, err := l.CLI(t, "agents", "find", "--skill", "irrigation")
			return err == nil && strings.Contains(out, w.site.DID(t)) && strings.Contains(out, want)
		})
		t.Logf("%q after %v", want, time.Since(begun).Round(10*time.Millisecond))
	}
	finds(w.ann, "drip irrigation")
	finds(bob, "shows you no agents")
	bob.CheckRefused(t, 3, "has no permission here", w.peer, "chat", "gpt", "lamp on")

	on := func() bool {
		t.Helper()
		out, err := w.site.CLI(t, "read", "lamp/relay")
		if err != nil {
			t.Fatal(out, err)
		}
		return strings.Contains(out, " on ")
	}
	off := func() {
		t.Helper()
		w.ann.MustCLI(t, "--site=shed", "set", "lamp/relay", "off")
		harness.WaitFor(t, 20*time.Second, "the lamp is off", func() bool { return !on() })
	}
	grant := func(words string) {
		t.Helper()
		var pass struct{ Grant string }
		harness.DecodeJSON(t, w.ann.MustCLI(t, "--site=shed", "grant", other.Key(t).ID().String(), words, "--json"), &pass)
		bob.MustCLI(t, "accept", pass.Grant)
	}

	// He may ask: he reads through the model, and an owner decides about each move.
	grant("ask gpt")
	if out := bob.MustCLI(t, "chat", "shed/gpt", "is the lamp on?"); !strings.Contains(out, "lamp/relay is off") {
		t.Errorf("it says %s", out)
	}
	bob.CheckRefused(t, 3, "you lack the permission", "--site=shed", "set", "lamp/relay", "on", "--for", "5s")
	for _, yes := range []bool{false, true} {
		talk := bob.Command(t.Context(), "chat", "shed/gpt", "lamp on")
		var said bytes.Buffer
		talk.Stdout, talk.Stderr = &said, &said
		if err := talk.Start(); err != nil {
			t.Fatal(err)
		}
		var handle string
		harness.WaitFor(t, time.Minute, "an owner is asked", func() bool {
			out, err := w.ann.CLI(t, "--site=shed", "approve")
			handle = handleText.FindString(out)
			return err == nil && handle != ""
		})
		if on() {
			t.Error("it moved before an owner approved")
		}
		args := []string{"--site=shed", "approve", handle}
		if !yes {
			args = append(args, "--deny")
		}
		w.ann.MustCLI(t, args...)
		if err := talk.Wait(); err != nil {
			t.Fatalf("%v %s", err, &said)
		}
		if done := strings.Contains(said.String(), "set lamp/relay to on: done"); done != yes || on() != yes {
			t.Errorf("approved %t, and the lamp is on %t: %s", yes, on(), &said)
		}
	}
	off()

	// He may move the lamp, too.
	grant("ask gpt, set lamp max 1m")
	begun := time.Now()
	out := bob.MustCLI(t, "chat", "shed/gpt", "lamp on")
	if took := time.Since(begun); !strings.Contains(out, "set lamp/relay to on: done") || !on() {
		t.Errorf("with a grant it says after %v %s", took, out)
	} else {
		t.Logf("asked and moved through the relay in %v", took.Round(10*time.Millisecond))
	}
	if why, err := w.site.CLI(t, "why", "lamp/relay", "--json"); err != nil || !strings.Contains(why, "gpt") || !strings.Contains(why, other.Key(t).ID().String()) {
		t.Errorf("it is not said for whom: %s %v", why, err)
	}
	off()

	// Agents of another site.
	ask := func(what ...string) string {
		t.Helper()
		out, err := barn.CLI(t, what...)
		return fmt.Sprint(out, err)
	}
	if out := ask("chat", "gpt", "lamp on"); strings.Contains(out, "to on: done") || on() {
		t.Errorf("without a grant the barn's model says %s", out)
	}
	text := grantText.FindString(w.ann.MustCLI(t, "grant", barn.DID(t), "read *, ask gpt, set lamp max 1h", "--to-site", "--site=shed"))
	if out, err := barn.CLI(t, "sites", "connect", text); err != nil {
		t.Fatal(out, err)
	}
	for _, what := range [][]string{{"chat", "gpt", "lamp on"}, {"ask", "light"}} {
		out := ""
		harness.WaitFor(t, time.Minute, "the barn's agent moves the lamp", func() bool {
			out = ask(what...)
			return on()
		})
		if why, err := w.site.CLI(t, "why", "lamp/relay", "--json"); err != nil || !strings.Contains(why, barn.DID(t)) {
			t.Errorf("the shed does not name the barn: %s %v", why, err)
		}
		t.Logf("%s: %s", what, out)
		off()
	}
	if paths := w.ann.Ping(t, 2, "--site=shed"); slices.ContainsFunc(paths, func(p string) bool { return p != "relayed" }) {
		t.Errorf("the way was %v", paths)
	}
}
