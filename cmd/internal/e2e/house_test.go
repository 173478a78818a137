//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// house is somebody with sites, some of which an agent of theirs may use.
type house struct {
	person
	at map[string]string // where sites listen on HTTPS
	of map[string]*running
}

// startHouse starts the sites and has somebody claim all but the last, and allow them to
// the assistant.
func startHouse(t *testing.T, names ...string) *house {
	t.Helper()
	h := &house{someone(t), make(map[string]string), make(map[string]*running)}
	for i, name := range names {
		h.at[name] = "127.0.0.1:" + freePort(t) // which is the site's after a restart, too
		h.of[name] = startAt(t, folder(t), h.at[name], "  "+name+": { driver: sim, model: climate }")
		who := h.person
		if i == len(names)-1 {
			who = someone(t)
		}
		who.must(t, "claim", h.of[name].invitation(t).String(), "--name", name)
	}
	h.must(t, "agents", "allow")
	return h
}

// again starts a site once more, where it was.
func (h *house) again(t *testing.T, name string) {
	t.Helper()
	h.of[name] = startAt(t, h.of[name].Folder, h.at[name], "  "+name+": { driver: sim, model: climate }")
}

// connect is the command that a client starts.
func (h *house) connect(t *testing.T, env ...string) *exec.Cmd {
	cmd := exec.Command(need(t, "the program", program), "connect")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+h.folder, "XDG_STATE_HOME="+folder(t))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// model is a client of the official SDK, and what it was notified of.
type model struct {
	*mcp.ClientSession
	process *exec.Cmd
	changed chan struct{} // the tools
	updated chan string   // resources
}

func (h *house) model(t *testing.T, revision string) *model {
	return modelOf(t, h.connect(t), revision)
}

func modelOf(t *testing.T, connect *exec.Cmd, revision string) *model {
	t.Helper()
	m := &model{process: connect, changed: make(chan struct{}, 100), updated: make(chan string, 100)}
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { m.changed <- struct{}{} },
		ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { m.updated <- r.Params.URI },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	})
	s, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: m.process}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	m.ClientSession = s
	t.Cleanup(func() { s.Close() })
	return m
}

// call calls a tool, and returns its structured result, or the text of its fault.
func (m *model) call(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	res, err := m.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args, Meta: mcp.Meta{"agentsite/idempotency-key": fmt.Sprint(tool, args)}})
	if err != nil {
		return err.Error()
	}
	if res.IsError {
		return res.Content[0].(*mcp.TextContent).Text
	}
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// points are the enum of a tool's argument.
func (m *model) points(t *testing.T, tool, arg string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	list, err := m.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, have := range list.Tools {
		if have.Name == tool {
			text, err := json.Marshal(have.InputSchema.(map[string]any)["properties"].(map[string]any)[arg])
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	return ""
}

func (m *model) within(t *testing.T, most time.Duration, what string, of <-chan struct{}) {
	t.Helper()
	select {
	case <-of:
	case <-time.After(most):
		t.Errorf("after %v there was no %s", most, what)
	}
}

// TestHouse: the sites that somebody allowed to the assistant, and no other, through one
// command. One of them dies in mid-call and comes back, while the other is not disturbed.
func TestHouse(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			h := startHouse(t, "attic", "barn", "cellar", "stranger")
			m := h.model(t, revision)
			if got := m.points(t, "switch_output", "output"); !strings.Contains(got, `["attic/box/relay","barn/box/relay","cellar/box/relay"]`) {
				t.Error(got)
			}
			all := m.call(t, "read_points", nil)
			for _, want := range []string{"attic/attic/temperature", "barn/barn/temperature", "cellar/cellar/temperature", `"Cel"`} {
				if !strings.Contains(all, want) {
					t.Errorf("no %s: %s", want, all)
				}
			}
			for _, says := range []string{all, m.call(t, "list_points", nil), m.call(t, "site_status", nil), m.points(t, "site_status", "site")} {
				if strings.Contains(says, "stranger") || strings.Contains(says, "not_answered") {
					t.Error(says)
				}
			}
			const relay = "agentsite:///attic/box/relay"
			if err := m.Subscribe(t.Context(), &mcp.SubscribeParams{URI: relay}); err != nil {
				t.Fatal(err)
			}
			on := map[string]any{"output": "attic/box/relay", "on": true, "for_seconds": 60}
			until(t, time.Minute, "the relay switches", func() bool { return strings.Contains(m.call(t, "switch_output", on), `"value":true`) })
			for uri := ""; uri != relay; {
				select {
				case uri = <-m.updated:
				case <-time.After(5 * time.Second):
					t.Fatal("nobody tells of the relay")
				}
			}
			if res, err := m.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: relay}); err != nil || !strings.Contains(res.Contents[0].Text, `"value":true`) {
				t.Error(res, err)
			}
			if got := m.call(t, "switch_output", map[string]any{"output": "stranger/box/relay", "on": true}); !strings.Contains(got, `invalid: there is no site "stranger" here; use attic, barn, cellar`) {
				t.Error(got)
			}

			var noticed, usable []time.Duration
			for i := range 3 {
				for len(m.changed) > 0 {
					<-m.changed
				}
				attic := h.of["attic"]
				if got := m.call(t, "read_points", map[string]any{"points": []string{"attic/box/relay"}}); !strings.Contains(got, `"good"`) {
					t.Error(got) // and there is a connection, which the next call takes
				}
				attic.Cmd.Process.Signal(syscall.SIGSTOP) // so that the call is under way
				until(t, time.Minute, "it stops", func() bool {
					stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", attic.Cmd.Process.Pid))
					return strings.Contains(string(stat), ") T ")
				})
				answer := make(chan string, 1)
				tool, args, want := "switch_output", map[string]any{"output": "attic/box/relay", "on": true, "for_seconds": 20}, "unknown_outcome: attic did not answer, and may or may not"
				if i == 1 {
					tool, args, want = "read_history", map[string]any{"point": "attic/attic/temperature"}, "offline: attic did not answer"
				}
				go func() { answer <- m.call(t, tool, args) }()
				begun := time.Now()
				if got := m.call(t, "read_points", map[string]any{"points": []string{"cellar/cellar/temperature"}}); !strings.Contains(got, `"good"`) || time.Since(begun) > 5*time.Second {
					t.Errorf("the other one answers %s after %v", got, time.Since(begun))
				}
				select {
				case got := <-answer:
					t.Fatal("it answers, and sleeps: ", got)
				case <-time.After(300 * time.Millisecond):
				}
				begun = time.Now()
				attic.kill(t)
				got := <-answer
				noticed = append(noticed, time.Since(begun))
				if !strings.HasPrefix(got, want) || time.Since(begun) > 5*time.Second {
					t.Errorf("after %v: %s", time.Since(begun), got)
				}
				m.within(t, 5*time.Second, "list_changed after it died", m.changed)
				if got := m.points(t, "switch_output", "output"); !strings.Contains(got, `["barn/box/relay","cellar/box/relay"]`) {
					t.Error(got)
				}
				if got := m.call(t, "switch_output", on); !strings.HasPrefix(got, "offline: attic is not reached") {
					t.Error(got)
				}
				if got := m.call(t, "read_points", nil); !strings.Contains(got, `"not_answered":[{"site":"attic","why":"attic is not reached`) || !strings.Contains(got, "cellar/cellar/temperature") {
					t.Error(got)
				}
				time.Sleep(time.Duration(i) * 4 * time.Second) // away for as long; nobody asks
				for len(m.changed) > 0 {
					<-m.changed
				}
				h.again(t, "attic")
				begun = time.Now()
				m.within(t, 10*time.Second, "list_changed after it came back", m.changed)
				if got := m.call(t, "read_points", map[string]any{"points": []string{"attic/attic/temperature"}}); !strings.Contains(got, "attic/attic/temperature") || time.Since(begun) > 10*time.Second {
					t.Errorf("after %v: %s", time.Since(begun), got)
				}
				usable = append(usable, time.Since(begun))
			}
			told(t, "killed to fault", noticed)
			told(t, "back to usable (≤ 3 s)", usable)
			for len(m.updated) > 0 {
				<-m.updated
			}
			h.must(t, "read", "--site", "attic") // it has the time from its owner, here where it has it from nobody else
			on["for_seconds"] = 61               // another call, or it would be told what came of the first
			until(t, time.Minute, "the relay switches", func() bool { return strings.Contains(m.call(t, "switch_output", on), `"value":true`) })
			select {
			case <-m.updated: // the subscription has outlived the site
			case <-time.After(5 * time.Second):
				t.Error("nobody tells of the relay any more")
			}

			// One that is forgotten, with no new start.
			for len(m.changed) > 0 {
				<-m.changed
			}
			h.must(t, "sites", "forget", "cellar", "--as", "assistant")
			m.call(t, "site_status", nil) // it looks when it is asked something
			m.within(t, 5*time.Second, "list_changed after it was forgotten", m.changed)
			if got := m.points(t, "switch_output", "output"); !strings.Contains(got, `["attic/box/relay","barn/box/relay"]`) {
				t.Error(got)
			}
			begun := time.Now()
			if err := m.Close(); err != nil || time.Since(begun) > 10*time.Second {
				t.Errorf("connect ends after %v with %v", time.Since(begun), err)
			}
		})
	}
}

// TestHouseConfirms: what takes the owner's word is approved at the site, and made then.
func TestHouseConfirms(t *testing.T) {
	h := &house{person: someone(t)}
	r := startAt(t, folder(t), "127.0.0.1:0", "  gate: { driver: sim, model: relay, min_off: 0, confirm: owner }")
	h.must(t, "claim", r.invitation(t).String())
	h.must(t, "agents", "allow")
	m := h.model(t, "2025-11-25")
	open := map[string]any{"output": "shed/gate/relay", "on": true, "for_seconds": 9}
	waits := ""
	until(t, time.Minute, "the gate has rested", func() bool {
		waits = m.call(t, "switch_output", open)
		return !strings.Contains(waits, "unsafe")
	})
	if !strings.HasPrefix(waits, "unavailable: the owner of shed has to approve this") {
		t.Fatal(waits)
	}
	handle := regexp.MustCompile(`[A-Z2-7]{26}`).FindString(h.must(t, "approve", "--site", "shed"))
	h.must(t, "approve", "--site", "shed", handle)
	if got := m.call(t, "switch_output", open); !strings.Contains(got, `"output":"shed/gate/relay"`) || !strings.Contains(got, `"value":true`) {
		t.Error(got)
	}
}

// TestHouseInspector has the MCP Inspector list and call tools of the house.
func TestHouseInspector(t *testing.T) {
	need(t, "Node 22", nodeProgram)
	h := startHouse(t, "attic", "barn", "cellar", "stranger")
	t.Setenv("XDG_CONFIG_HOME", h.folder)
	t.Setenv("XDG_STATE_HOME", folder(t))
	for _, era := range []string{"modern", "legacy"} {
		inspect := func(args ...string) string {
			t.Helper()
			all := append([]string{"--cli", "--protocol-era", era}, args...)
			// The Inspector hands its environment on to nobody but where it is told to.
			all = append(all, "--transport", "stdio", "-e", "XDG_CONFIG_HOME="+h.folder, "-e", "XDG_STATE_HOME="+os.Getenv("XDG_STATE_HOME"), "--", program, "connect")
			out, err := node(t, time.Minute, "@modelcontextprotocol/inspector/clients/launcher/build/index.js", all...)
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

// TestHouseOfTen: ten sites have the tools of one, and cost next to nothing while nobody
// asks anything.
func TestHouseOfTen(t *testing.T) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("site-", i))
	}
	h := startHouse(t, append(names, "stranger")...)
	size := func(m *model) (tools, bytes int) {
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
	m := h.model(t, "2026-07-28")
	ten, tenBytes := size(m)
	if got := m.call(t, "read_points", nil); strings.Count(got, "/temperature") != 10 || strings.Contains(got, "not_answered") {
		t.Error(got)
	}
	const awhile = 10 * time.Second
	pid := m.process.Process.Pid
	before := voluntary(t, pid)
	time.Sleep(awhile)
	perSecond := (voluntary(t, pid) - before) / awhile.Seconds()
	t.Logf("idle over ten sites: %.1f voluntary context switches a second, %.0f kB at most", perSecond, status(t, pid, "VmHWM:"))
	for _, name := range names[1:] {
		h.must(t, "sites", "forget", name, "--as", "assistant")
	}
	one, oneBytes := size(h.model(t, "2026-07-28"))
	t.Logf("one site: %d tools, %d bytes; ten sites: %d tools, %d bytes", one, oneBytes, ten, tenBytes)
	if one != ten || tenBytes > 2*oneBytes {
		t.Errorf("%d tools of %d bytes become %d of %d", one, oneBytes, ten, tenBytes)
	}
	if perSecond > 10 {
		t.Errorf("%.1f context switches a second", perSecond)
	}
}

// TestHouseHere: the site that runs on this machine is there under its own name, while it
// runs, and once it is among the known ones as one of those.
func TestHouseHere(t *testing.T) {
	h := startHouse(t, "attic", "stranger")
	state := folder(t)
	data := filepath.Join(state, "agentsite")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	here := func() *running {
		return startIn(t, data, "site: { name: here }\ndevices:\n  den: { driver: sim, model: climate }\n", nil, program, "run", "--listen-https", "127.0.0.1:0")
	}
	m := modelOf(t, h.connect(t, "XDG_STATE_HOME="+state), "2025-11-25")
	sees := func(want string) {
		t.Helper()
		until(t, time.Minute, "the sites are "+want, func() bool { return strings.Contains(m.points(t, "site_status", "site"), `"enum":`+want) })
	}
	sees(`["attic"]`)
	r := here()
	sees(`["attic","here"]`)
	if got := m.call(t, "read_points", map[string]any{"points": []string{"here/den/temperature", "attic/attic/temperature"}}); strings.Count(got, `"good"`) != 2 {
		t.Error(got)
	}
	r.kill(t)
	until(t, time.Minute, "it is missed", func() bool { // the first call may take the connection that there was
		return strings.HasPrefix(m.call(t, "read_points", map[string]any{"points": []string{"here/den/temperature"}}), "offline: here is not reached")
	})
	r = here()
	until(t, time.Minute, "it is there again", func() bool {
		return strings.Contains(m.call(t, "read_points", map[string]any{"points": []string{"here/den/temperature"}}), `"good"`)
	})
	h.must(t, "claim", r.invitation(t).String(), "--name", "mine")
	h.must(t, "agents", "allow", "--site", "mine", "read *")
	sees(`["attic","mine"]`)
	if got := m.call(t, "emergency_stop", map[string]any{"site": "mine"}); !strings.HasPrefix(got, "denied: mine does not offer emergency_stop to you") {
		t.Error(got)
	}
	r.Stop(t)
}

// TestHouseOrPipe: where an agent knows no site, and with --data, connect is the pipe to
// the site on this machine.
func TestHouseOrPipe(t *testing.T) {
	h := &house{person: someone(t)}
	r := start(t, "", need(t, "the program", program))
	if out, err := h.agentsite(t, "connect", "--as", "nobody"); err == nil || !strings.Contains(err.Error(), `you have no agent "nobody"`) {
		t.Error(out, err)
	}
	if out, err := h.agentsite(t, "connect", "--as", "assistant", "--data", r.Folder); err == nil || !strings.Contains(err.Error(), "leave out --data") {
		t.Error(out, err)
	}
	m := modelOf(t, h.connect(t, "STATE_DIRECTORY="+r.Folder), "2025-11-25")
	if got := m.call(t, "read_points", map[string]any{"points": []string{"greenhouse/temperature"}}); !strings.Contains(got, "Cel") {
		t.Error(got)
	}
}
