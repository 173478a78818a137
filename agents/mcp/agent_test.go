package mcp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/tools"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

type jsonArgs string

func (a jsonArgs) Decode(into any) error { return json.Unmarshal([]byte(a), into) }

type rig struct {
	*Agent
	stored  []byte
	changes int
}

// newRig runs an agent with a child of a mode: over a pipe in this process, or a process.
func newRig(t *testing.T, mode string, process bool, stored []byte) *rig {
	t.Helper()
	r := &rig{stored: stored}
	book, err := ReadBook(stored, func(text []byte) error { r.stored = text; return nil })
	if err != nil {
		t.Fatal(err)
	}
	w := World{Book: book, Version: "1", Changed: func() { r.changes++ }}
	starts := 0
	if !process {
		w.Dial = func(context.Context, *Agent) (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			starts++
			go func() { defer theirs.Close(); serve(mode, starts, theirs, func() { theirs.Close() }) }()
			return ours, nil
		}
	}
	r.Agent = New(w)
	r.SetName("weather")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.Command = []string{self, "child", mode, filepath.Join(t.TempDir(), "starts")}
	r.Allowed = []string{"get-forecast", "hidden", "long", "absent"}
	r.Rename = map[string]string{"get-forecast": "forecast"}
	r.Isolation = isolationNone
	if _, err := r.Define(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	waiting := make(chan struct{})
	running := waitedFor{ctx, sync.OnceFunc(func() { close(waiting) })}
	go func() { defer close(ended); r.Run(running, agents.Principal{ID: "mcp:weather"}, nil) }()
	t.Cleanup(func() { cancel(); <-ended })
	<-waiting
	return r
}

// waitedFor is a context that calls waits when its end is first waited for: Run has begun then.
type waitedFor struct {
	context.Context
	waits func()
}

func (w waitedFor) Done() <-chan struct{} {
	w.waits()
	return w.Context.Done()
}

func (r *rig) call(t *testing.T) (tools.Result, error) {
	t.Helper()
	return r.Call(t.Context(), agents.Principal{}, tools.Call{Tool: "weather_forecast", Args: jsonArgs(`{"place":"here"}`)})
}

func (r *rig) acceptAll(t *testing.T) {
	t.Helper()
	o, err := r.Offered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Accept(t.Context(), o.Digest); err != nil {
		t.Fatal(err)
	}
}

// gone waits until the child has ended.
func (r *rig) gone(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	c := r.child
	r.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the child goes on")
	}
}

func kindOf(err error) device.FaultKind {
	if err == nil {
		return ""
	}
	return device.AsFault(err).Kind
}

// TestChildren is the same for a child in this process and for a real one.
func TestChildren(t *testing.T) {
	for name, process := range map[string]bool{"pipe": false, "process": true} {
		if process && testing.Short() {
			continue // an emulated program starts no process of its own kind
		}
		t.Run(name, func(t *testing.T) {
			t.Run("accept", func(t *testing.T) { testAccept(t, process) })
			t.Run("changes", func(t *testing.T) { testChanges(t, process) })
			t.Run("loop", func(t *testing.T) { testLoop(t, process) })
			for mode, kind := range map[string]device.FaultKind{
				"crash": device.UnknownOutcome, "flood": device.UnknownOutcome, "large": device.Invalid, "error": device.Invalid,
				"giant": "", "garbage": "", "deep": "",
			} {
				t.Run(mode, func(t *testing.T) {
					r := newRig(t, mode, process, nil)
					r.acceptAll(t)
					if _, err := r.call(t); kindOf(err) != kind {
						t.Errorf("%v; want %s", err, kind)
					}
					if kind != device.UnknownOutcome {
						return
					}
					r.gone(t)
					if _, err := r.call(t); kindOf(err) != device.Unavailable {
						t.Errorf("right after: %v", err)
					}
					if rep := r.Report(t.Context()); rep.State != agent.Failed || rep.Says == "" {
						t.Errorf("%+v", rep)
					}
				})
			}
			t.Run("slow", func(t *testing.T) {
				r := newRig(t, "slow", process, nil)
				r.acceptAll(t)
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if _, err := r.Call(ctx, agents.Principal{}, tools.Call{Tool: "weather_forecast", Args: jsonArgs("{}")}); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		})
	}
}

func testAccept(t *testing.T, process bool) {
	r := newRig(t, "good", process, nil)
	if _, err := r.call(t); err != tools.ErrNotFound || len(r.Tools()) != 0 {
		t.Errorf("before it is accepted: %v, %v", err, r.Tools())
	}
	o, err := r.Offered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []agent.ToolState{agent.ToolNew, agent.ToolRefused, agent.ToolRefused, agent.ToolMissing} {
		if o.Tools[i].State != want {
			t.Errorf("%+v; want %s", o.Tools[i], want)
		}
	}
	if err := r.Accept(t.Context(), strings.Repeat("0", 64)); kindOf(err) != device.Invalid {
		t.Error("another digest:", err)
	}
	if err := r.Accept(t.Context(), o.Digest); err != nil {
		t.Fatal(err)
	}
	all := r.Tools()
	if len(all) != 1 || all[0].Name != "weather_forecast" || all[0].Description != "Says what the weather will be." || !all[0].Hints.Destructive || r.changes == 0 {
		t.Errorf("%+v after %d changes", all, r.changes)
	}
	res, err := r.call(t)
	if err != nil || res.From != "mcp:weather" || len(res.Content) != 1 || !strings.HasPrefix(res.Content[0].Text, "rain") {
		t.Errorf("%+v, %v", res, err)
	}
	// The tools that were accepted are offered after a restart of the site, without a child.
	again := newRig(t, "loop", process, r.stored)
	if len(again.Tools()) != 1 {
		t.Errorf("after a restart: %v", again.Tools())
	}
}

func testChanges(t *testing.T, process bool) {
	r := newRig(t, "changes", process, nil)
	r.acceptAll(t)
	if _, err := r.call(t); err != nil {
		t.Fatal(err)
	}
	o, err := r.Offered(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		r.mu.Lock()
		c := r.child
		r.mu.Unlock()
		r.stopIdle(c)
		<-c.ended
	}
	stop()
	if len(r.Tools()) != 1 {
		t.Error("a child that is idle offers nothing")
	}
	if _, err := r.call(t); kindOf(err) != device.Denied || len(r.Tools()) != 0 {
		t.Errorf("changed: %v, %v", err, r.Tools())
	}
	if err := r.Accept(t.Context(), o.Digest); kindOf(err) != device.Invalid {
		t.Error("what was shown before the change is accepted:", err)
	}
	r.acceptAll(t)
	if _, err := r.call(t); err != nil || len(r.Tools()) != 1 {
		t.Errorf("accepted again: %v", err)
	}
}

func testLoop(t *testing.T, process bool) {
	r := newRig(t, "loop", process, nil)
	for n := range maxCrashes {
		if _, err := r.Offered(t.Context()); kindOf(err) != device.Offline {
			t.Fatalf("start %d: %v", n, err)
		}
		if _, err := r.Offered(t.Context()); kindOf(err) != device.Unavailable {
			t.Fatalf("at once after start %d: %v", n, err)
		}
		r.mu.Lock()
		if wait := time.Until(r.until); wait < backoffMin<<n-time.Second || wait > backoffMax {
			t.Errorf("after crash %d it waits %v", n, wait)
		}
		r.until = time.Time{}
		r.mu.Unlock()
	}
	if _, err := r.Offered(t.Context()); kindOf(err) != device.Unavailable {
		t.Error("it is not off:", err)
	}
	if rep := r.Report(t.Context()); rep.State != agent.Failed {
		t.Errorf("%+v", rep)
	}
	r.Resume()
	if _, err := r.Offered(t.Context()); kindOf(err) != device.Offline {
		t.Error("resumed:", err)
	}
}

func TestDefine(t *testing.T) {
	for key, change := range map[string]func(*Agent){
		"command":   func(a *Agent) { a.Command = []string{"/bin/x", "a\nExecStartPre=/bin/y"} },
		"tools":     func(a *Agent) { a.Allowed = []string{"points"} }, // read_points is the site's
		"rename":    func(a *Agent) { a.Rename = map[string]string{"other": "x"} },
		"secrets":   func(a *Agent) { a.Secrets = map[string]string{"LD_PRELOAD": "x"} },
		"isolation": func(a *Agent) { a.Isolation = "some" },
	} {
		a := New(World{})
		a.SetName("read")
		a.Command, a.Allowed = []string{"/bin/x"}, []string{"say"}
		change(a)
		_, err := a.Define()
		var wrong *agent.Mistake
		if !errors.As(err, &wrong) || wrong.Key != key {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestUnits: each text of a configuration is one word of the unit, whatever its characters.
func TestUnits(t *testing.T) {
	a := New(World{})
	a.SetName("weather")
	a.Command = []string{"node", `/x "y" \ %h $HOME`, "';rm"}
	a.Allowed, a.Secrets = []string{"say"}, map[string]string{"API_KEY": "weather.key"}
	if _, err := a.Define(); err != nil {
		t.Fatal(err)
	}
	files := a.Units("/usr/bin/node", "/etc/agent%site")
	service := files["agentsite-child-weather@.service"]
	for _, want := range []string{
		`"/usr/bin/node" "/x \"y\" \\ %%h $$HOME" "';rm"` + "\n", "\nPrivateNetwork=yes\n", "\nDynamicUser=yes\n",
		"\nLoadCredential=API_KEY:/etc/agent%%site/weather.key\n", "\nStandardInput=socket\n",
	} {
		if !strings.Contains(service, want) {
			t.Errorf("no %q in\n%s", want, service)
		}
	}
	if strings.Count(service, "\nExecStart=") != 1 || !strings.Contains(files["agentsite-child-weather.socket"], "\nListenStream=/run/agentsite-child-weather.sock\n") {
		t.Errorf("%v", files)
	}
	if a.Net = true; strings.Contains(a.Units("/usr/bin/node", "/etc")["agentsite-child-weather@.service"], "PrivateNetwork") {
		t.Error("no network")
	}
}

// TestUnitSockets: a child has no family of sockets by which it reaches a service of the machine, and no
// way around the filter of families.
func TestUnitSockets(t *testing.T) {
	for net, families := range map[bool]string{false: "none", true: "AF_INET AF_INET6 AF_NETLINK"} {
		a := New(World{})
		a.SetName("weather")
		a.Command, a.Allowed, a.Net = []string{"node"}, []string{"say"}, net
		if _, err := a.Define(); err != nil {
			t.Fatal(err)
		}
		has := make(map[string][]string)
		for line := range strings.Lines(a.Units("/usr/bin/node", "/etc")["agentsite-child-weather@.service"]) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			has[key] = append(has[key], value)
		}
		if got := has["RestrictAddressFamilies"]; !slices.Equal(got, []string{families}) {
			t.Errorf("net %v: the families are %q", net, got)
		}
		if got := has["SystemCallFilter"]; !slices.Contains(got, "~@aio") {
			t.Errorf("net %v: the filter is %q", net, got)
		}
		hidden := strings.Fields(strings.Join(has["InaccessiblePaths"], " "))
		for _, want := range []string{"/run/dbus", "/run/avahi-daemon", "/run/NetworkManager", "/run/agentsite"} {
			if !slices.Contains(hidden, "-"+want) {
				t.Errorf("net %v: %s is not hidden", net, want)
			}
		}
	}
}

// FuzzChildMessage: each repaired line is one object of valid JSON within the depth, and stays as it is
// when it is repaired again.
func FuzzChildMessage(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":null}]}`, `{}{}`, `[]`, `{"a":1,"a":2}`, bad["deep"], "{", "{} x", `{"a":"\ud83d"}`, `{"a":[NaN,-Infinity,"NaN\"NaN"]}`, "{\"a\":\"\xff\"}", `{"id":3,"result":{"content":[{"type":"x"}]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		v, err := repair(line)
		if err != nil {
			return
		}
		again, err := repair(v)
		if !v.IsValid() || v.Kind() != '{' || err != nil || string(again) != string(v) {
			t.Errorf("%q is repaired as %q, %v", line, v, err)
		}
		message(v)
		answered(line)
	})
}
