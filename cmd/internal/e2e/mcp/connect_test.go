//go:build e2e

package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestConnect: the sites that somebody allowed to the assistant, and no other, through one
// command. One of them dies in mid-call and comes back, while the other is not disturbed.
func TestConnect(t *testing.T) {
	t.Parallel() // it waits, mostly
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			h := harness.StartConnectedSites(t, "attic", "barn", "cellar", "stranger")
			m := h.Connect(t, revision)
			if got := m.ArgumentEnum(t, "switch_output", "output"); !strings.Contains(got, `["attic/box/relay","barn/box/relay","cellar/box/relay"]`) {
				t.Error(got)
			}
			all := m.Call(t, "read_points", nil)
			for _, want := range []string{"attic/attic/temperature", "barn/barn/temperature", "cellar/cellar/temperature", `"Cel"`} {
				if !strings.Contains(all, want) {
					t.Errorf("no %s: %s", want, all)
				}
			}
			for _, says := range []string{all, m.Call(t, "list_points", nil), m.Call(t, "site_status", nil), m.ArgumentEnum(t, "site_status", "site")} {
				if strings.Contains(says, "stranger") || strings.Contains(says, "not_answered") {
					t.Error(says)
				}
			}
			const relay = "agentsite:///attic/box/relay"
			if err := m.Subscribe(t.Context(), &mcp.SubscribeParams{URI: relay}); err != nil {
				t.Fatal(err)
			}
			on := map[string]any{"output": "attic/box/relay", "on": true, "for_seconds": 60}
			harness.WaitFor(t, time.Minute, "the relay switches", func() bool { return strings.Contains(m.Call(t, "switch_output", on), `"value":true`) })
			for uri := ""; uri != relay; {
				select {
				case uri = <-m.ResourceUpdated:
				case <-time.After(5 * time.Second):
					t.Fatal("nobody tells of the relay")
				}
			}
			if res, err := m.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: relay}); err != nil || !strings.Contains(res.Contents[0].Text, `"value":true`) {
				t.Error(res, err)
			}
			if got := m.Call(t, "switch_output", map[string]any{"output": "stranger/box/relay", "on": true}); !strings.HasPrefix(got, "invalid: ") || !strings.Contains(got, "attic, barn, cellar") {
				t.Error(got)
			}

			var noticed, usable []time.Duration
			for i := range 3 {
				for len(m.ToolsChanged) > 0 {
					<-m.ToolsChanged
				}
				attic := h.Sites["attic"]
				if got := m.Call(t, "read_points", map[string]any{"points": []string{"attic/box/relay"}}); !strings.Contains(got, `"good"`) {
					t.Error(got) // and there is a connection, which the next call takes
				}
				attic.Cmd.Process.Signal(syscall.SIGSTOP) // so that the call is under way
				harness.WaitFor(t, time.Minute, "it stops", func() bool {
					stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", attic.Cmd.Process.Pid))
					return strings.Contains(string(stat), ") T ")
				})
				answer := make(chan string, 1)
				tool, args, want := "switch_output", map[string]any{"output": "attic/box/relay", "on": true, "for_seconds": 20}, "unknown_outcome: "
				if i == 1 {
					tool, args, want = "read_history", map[string]any{"point": "attic/attic/temperature"}, "offline: "
				}
				go func() { answer <- m.Call(t, tool, args) }()
				begun := time.Now()
				if got := m.Call(t, "read_points", map[string]any{"points": []string{"cellar/cellar/temperature"}}); !strings.Contains(got, `"good"`) || time.Since(begun) > 5*time.Second {
					t.Errorf("the other one answers %s after %v", got, time.Since(begun))
				}
				select {
				case got := <-answer:
					t.Fatal("it answers, and sleeps: ", got)
				case <-time.After(300 * time.Millisecond):
				}
				begun = time.Now()
				attic.Kill(t)
				got := <-answer
				noticed = append(noticed, time.Since(begun))
				if !strings.HasPrefix(got, want) || time.Since(begun) > 5*time.Second {
					t.Errorf("after %v: %s", time.Since(begun), got)
				}
				// One notification may be of the site's last return.
				m.WaitForChange(t, 5*time.Second, "list_changed after it died", m.ToolsChanged)
				harness.WaitFor(t, 5*time.Second, "its output is not offered", func() bool {
					return strings.Contains(m.ArgumentEnum(t, "switch_output", "output"), `["barn/box/relay","cellar/box/relay"]`)
				})
				if got := m.Call(t, "switch_output", on); !strings.HasPrefix(got, "offline: attic is ") {
					t.Error(got)
				}
				if got := m.Call(t, "read_points", nil); !strings.Contains(got, `"not_answered":[{"site":"attic","why":"attic is not reached`) || !strings.Contains(got, "cellar/cellar/temperature") {
					t.Error(got)
				}
				time.Sleep(time.Duration(i) * 4 * time.Second) // away for as long; nobody asks
				for len(m.ToolsChanged) > 0 {
					<-m.ToolsChanged
				}
				h.Restart(t, "attic")
				begun = time.Now()
				m.WaitForChange(t, 10*time.Second, "list_changed after it came back", m.ToolsChanged)
				if got := m.Call(t, "read_points", map[string]any{"points": []string{"attic/attic/temperature"}}); !strings.Contains(got, "attic/attic/temperature") || time.Since(begun) > 10*time.Second {
					t.Errorf("after %v: %s", time.Since(begun), got)
				}
				usable = append(usable, time.Since(begun))
			}
			harness.LogDurations(t, "killed to fault", noticed)
			harness.LogDurations(t, "back to usable (≤ 3 s)", usable)
			for len(m.ResourceUpdated) > 0 {
				<-m.ResourceUpdated
			}
			h.MustCLI(t, "read", "--site", "attic") // it has the time from its owner, here where it has it from nobody else
			on["for_seconds"] = 61                  // another call, or it would be told what came of the first
			harness.WaitFor(t, time.Minute, "the relay switches", func() bool { return strings.Contains(m.Call(t, "switch_output", on), `"value":true`) })
			select {
			case <-m.ResourceUpdated: // the subscription has outlived the site
			case <-time.After(5 * time.Second):
				t.Error("nobody tells of the relay any more")
			}

			// One that is forgotten, with no new start.
			for len(m.ToolsChanged) > 0 {
				<-m.ToolsChanged
			}
			h.MustCLI(t, "sites", "forget", "cellar", "--as", "assistant")
			m.Call(t, "site_status", nil) // it looks when it is asked something
			m.WaitForChange(t, 5*time.Second, "list_changed after it was forgotten", m.ToolsChanged)
			if got := m.ArgumentEnum(t, "switch_output", "output"); !strings.Contains(got, `["attic/box/relay","barn/box/relay"]`) {
				t.Error(got)
			}
			begun := time.Now()
			if err := m.Close(); err != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("connect ends after %v with %v", time.Since(begun), err)
			}
		})
	}
}

// TestConnectConfirms: a call that needs the owner's approval is approved at the site, and then
// made.
func TestConnectConfirms(t *testing.T) {
	h := &harness.ConnectedSites{Person: harness.NewPerson(t)}
	r := harness.StartHTTPSAt(t, harness.TempDir(t), "127.0.0.1:0", "  gate: { driver: sim, model: relay, min_off: 0, confirm: owner }")
	h.MustCLI(t, "claim", r.Invitation(t).String())
	h.MustCLI(t, "agents", "allow")
	m := h.Connect(t, "2025-11-25")
	open := map[string]any{"output": "shed/gate/relay", "on": true, "for_seconds": 9}
	waits := ""
	harness.WaitFor(t, time.Minute, "the gate has rested", func() bool {
		waits = m.Call(t, "switch_output", open)
		return !strings.Contains(waits, "unsafe")
	})
	if !strings.HasPrefix(waits, "unavailable: the owner of shed ") {
		t.Fatal(waits)
	}
	handle := regexp.MustCompile(`[A-Z2-7]{26}`).FindString(h.MustCLI(t, "approve", "--site", "shed"))
	h.MustCLI(t, "approve", "--site", "shed", handle)
	if got := m.Call(t, "switch_output", open); !strings.Contains(got, `"output":"shed/gate/relay"`) || !strings.Contains(got, `"value":true`) {
		t.Error(got)
	}
}

// TestConnectInspector lists and calls tools of the house with the MCP Inspector.
func TestConnectInspector(t *testing.T) {
	harness.Need(t, "Node 22", harness.NodeProgram)
	h := harness.StartConnectedSites(t, "attic", "barn", "cellar", "stranger")
	t.Setenv("XDG_CONFIG_HOME", h.Folder)
	t.Setenv("XDG_STATE_HOME", harness.TempDir(t))
	for _, era := range []string{"modern", "legacy"} {
		inspect := func(args ...string) string {
			t.Helper()
			all := append([]string{"--cli", "--protocol-era", era}, args...)
			// The Inspector hands its environment on to nobody but where it is told to.
			all = append(all, "--transport", "stdio", "-e", "XDG_CONFIG_HOME="+h.Folder, "-e", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"), "--", harness.Program, "connect")
			out, err := npm.Run(t, time.Minute, npm.Inspector, all...)
			if err != nil {
				t.Fatalf("%v: %v\n%s", all, err, out)
			}
			return out
		}
		if out := inspect("--strict", "--method", "tools/list"); !strings.Contains(out, `"cellar/box/relay"`) || strings.Contains(out, "stranger") {
			t.Errorf("%s: %s", era, out)
		}
		out := inspect("--method", "tools/call", "--tool-name", "read_points", "--tool-arg", `points=["attic/attic/temperature","barn/barn/temperature","cellar/cellar/humidity"]`)
		if !strings.Contains(out, "Cel") || !strings.Contains(out, "barn/barn/temperature") || !strings.Contains(out, "cellar/cellar/humidity") {
			t.Errorf("%s: %s", era, out)
		}
		if out := inspect("--method", "resources/read", "--uri", "agentsite:///cellar/cellar/temperature"); !strings.Contains(out, "Cel") {
			t.Errorf("%s: %s", era, out)
		}
	}
}

// TestConnectTenSites: ten sites have the tools of one, and cost next to nothing while nobody
// asks anything.
func TestConnectTenSites(t *testing.T) {
	t.Parallel() // it waits, mostly
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("site-", i))
	}
	h := harness.StartConnectedSites(t, append(names, "stranger")...)
	size := func(m *harness.SDKClient) (tools, bytes int) {
		list, err := m.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Tools), len(text)
	}
	m := h.Connect(t, "2026-07-28")
	ten, tenBytes := size(m)
	if got := m.Call(t, "read_points", nil); strings.Count(got, "/temperature") != 10 || strings.Contains(got, "not_answered") {
		t.Error(got)
	}
	const awhile = 10 * time.Second
	pid := m.Process.Process.Pid
	before := harness.VoluntarySwitches(t, pid)
	time.Sleep(awhile)
	perSecond := (harness.VoluntarySwitches(t, pid) - before) / awhile.Seconds()
	t.Logf("idle over ten sites: %.1f voluntary context switches a second, %.0f kB at most", perSecond, harness.Status(t, pid, "VmHWM:"))
	for _, name := range names[1:] {
		h.MustCLI(t, "sites", "forget", name, "--as", "assistant")
	}
	one, oneBytes := size(h.Connect(t, "2026-07-28"))
	t.Logf("one site: %d tools, %d bytes; ten sites: %d tools, %d bytes", one, oneBytes, ten, tenBytes)
	if one != ten || tenBytes > 2*oneBytes {
		t.Errorf("%d tools of %d bytes become %d of %d", one, oneBytes, ten, tenBytes)
	}
	if perSecond > 10 {
		t.Errorf("%.1f context switches a second", perSecond)
	}
}

// TestConnectHere: the site that runs on this machine is presented under its own name while it
// runs, and as a contact once it is one.
func TestConnectHere(t *testing.T) {
	h := harness.StartConnectedSites(t, "attic", "stranger")
	state := harness.TempDir(t)
	data := filepath.Join(state, "agentsite")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	here := func() *harness.Site {
		return harness.StartIn(t, data, "site: { name: here }\ndevices:\n  den: { driver: sim, model: climate }\n", nil, harness.Program, "run", "--listen-https", "127.0.0.1:0")
	}
	m := harness.ConnectSDK(t, h.Command(t, "XDG_STATE_HOME="+state), "2025-11-25")
	sees := func(want string) {
		t.Helper()
		harness.WaitFor(t, time.Minute, "the sites are "+want, func() bool { return strings.Contains(m.ArgumentEnum(t, "site_status", "site"), `"enum":`+want) })
	}
	sees(`["attic"]`)
	r := here()
	sees(`["attic","here"]`)
	if got := m.Call(t, "read_points", map[string]any{"points": []string{"here/den/temperature", "attic/attic/temperature"}}); strings.Count(got, `"good"`) != 2 {
		t.Error(got)
	}
	r.Kill(t)
	harness.WaitFor(t, time.Minute, "it is missed", func() bool { // the first call may take the connection that there was
		return strings.HasPrefix(m.Call(t, "read_points", map[string]any{"points": []string{"here/den/temperature"}}), "offline: here is ")
	})
	r = here()
	harness.WaitFor(t, time.Minute, "it is there again", func() bool {
		return strings.Contains(m.Call(t, "read_points", map[string]any{"points": []string{"here/den/temperature"}}), `"good"`)
	})
	h.MustCLI(t, "claim", r.Invitation(t).String(), "--name", "mine")
	h.MustCLI(t, "agents", "allow", "--site", "mine", "read *")
	sees(`["attic","mine"]`)
	if got := m.Call(t, "emergency_stop", map[string]any{"site": "mine"}); !strings.HasPrefix(got, "denied: mine does not offer ") {
		t.Error(got)
	}
	r.Stop(t)
}

// TestConnectOrPipe: where an agent knows no site, and with --data, connect is the pipe to
// the site on this machine.
func TestConnectOrPipe(t *testing.T) {
	h := &harness.ConnectedSites{Person: harness.NewPerson(t)}
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	if out, err := h.CLI(t, "connect", "--as", "nobody"); err == nil || !strings.Contains(err.Error(), `you have no agent "nobody"`) {
		t.Error(out, err)
	}
	if out, err := h.CLI(t, "connect", "--as", "assistant", "--data", r.Folder); err == nil || !strings.Contains(err.Error(), "leave out --data") {
		t.Error(out, err)
	}
	m := harness.ConnectSDK(t, h.Command(t, "STATE_DIRECTORY="+r.Folder), "2025-11-25")
	if got := m.Call(t, "read_points", map[string]any{"points": []string{"greenhouse/temperature"}}); !strings.Contains(got, "Cel") {
		t.Error(got)
	}
}
