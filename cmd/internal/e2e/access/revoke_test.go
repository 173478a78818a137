//go:build e2e

package access

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/state"
)

// TestRevoked: after a revocation the next call is refused within 10 ms, held outputs are safe
// within 100 ms, and the subscription ends.
func TestRevoked(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	r := harness.StartRelay(t)
	owner, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	var refused, safe []time.Duration
	for i := range harness.Workload(20, 200) {
		name := fmt.Sprint("t", i)
		_, c := r.AddToken(t, name, "set box, read box")
		harness.WaitFor(t, time.Minute, "the relay switches", func() bool {
			_, err := c.Ask(t.Context(), "switch_output", []byte(`{"output":"box/relay","on":true,"for_seconds":60}`))
			return err == nil
		})
		ended, live := make(chan error, 1), make(chan struct{})
		go func() {
			var once sync.Once
			ended <- c.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{Points: []string{"box/relay"}}, func(agents.Update) error {
				once.Do(func() { close(live) })
				return nil
			})
		}()
		<-live
		first := time.Duration(0)
		safe = append(safe, harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
			if r.State() != "on" {
				return 0 // a second try: it went off in the first
			}
			begun := time.Now()
			done := make(chan error, 1)
			go func() {
				_, err := owner.CallMethod(context.WithoutCancel(t.Context()), string(acts.RevokeAct), acts.Name{Name: name})
				done <- err
			}()
			for {
				_, err := c.Ask(t.Context(), "read_points", []byte(`{}`))
				if err != nil {
					first = time.Since(begun)
					break
				}
			}
			r.WaitForOff()
			took := time.Since(begun)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			return took
		}))
		refused = append(refused, first)
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "revoked") {
				t.Error("the subscription ended with", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("the subscription goes on")
		}
	}
	harness.LogDurations(t, "revoked to refusal", refused)
	harness.LogDurations(t, "revoked to safe", safe)
}

// TestPermissionEnds: when a permission expires, its subscription ends, although no point changes,
// and outputs held by it go to safe.
func TestPermissionEnds(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	r := harness.StartRelay(t)
	const length, lease = 10 * time.Second, 60
	begun := time.Now()
	_, c := r.AddToken(t, "brief", "set box, read box", "--until", length.String())
	ended, live := make(chan error, 1), make(chan struct{})
	go func() {
		var once sync.Once
		ended <- c.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{Points: []string{"box/relay"}}, func(agents.Update) error {
			once.Do(func() { close(live) })
			return nil
		})
	}()
	select {
	case <-live:
	case err := <-ended:
		t.Fatal(err)
	}
	harness.WaitFor(t, length, "the relay switches", func() bool {
		_, err := c.Ask(t.Context(), "switch_output", fmt.Appendf(nil, `{"output":"box/relay","on":true,"for_seconds":%d}`, lease))
		return err == nil
	})
	on := r.State() == "on"
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "revoked") {
			t.Error("the subscription ended with", err)
		}
	case <-time.After(lease / 2 * time.Second):
		t.Error("the subscription goes on")
	}
	harness.WaitFor(t, lease/2*time.Second, "the relay is safe", func() bool { return r.State() == "off" })
	if took := time.Since(begun); !on || took > lease*time.Second {
		t.Errorf("it was on: %v; it went off after %v, as its lease did", on, took)
	} else {
		t.Logf("a permission of %v ended after %v", length, took)
	}
}

// TestNarrowToken: over HTTP, in every way to ask, no name of what a token does not permit.
func TestNarrowToken(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	r := harness.StartRelay(t, "den: { driver: sim, model: climate }")
	secret, c := r.AddToken(t, "shy", "read den/temperature")
	tools, err := c.Tools(t.Context())
	if err != nil || len(tools) != 5 {
		t.Error(tools, err)
	}
	type asks struct{ method, name, params string }
	all := []asks{}
	for _, method := range r.Routes(t).Methods { // a new one, too
		if method != "subscriptions/listen" {
			all = append(all, asks{method, "", ""})
		}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, c := range append(all, []asks{
		{"tools/call", "list_points", `"name":"list_points","arguments":{}`},
		{"tools/call", "read_points", `"name":"read_points","arguments":{}`},
		{"tools/call", "read_points", `"name":"read_points","arguments":{"points":["x/y"]}`},
		{"tools/call", "read_history", `"name":"read_history","arguments":{"point":""}`},
		{"tools/call", "explain_point", `"name":"explain_point","arguments":{"point":"den/temperature"}`},
		{"tools/call", "explain_point", `"name":"explain_point","arguments":{"point":"x/y"}`},
		{"tools/call", "site_status", `"name":"site_status","arguments":{}`},
		{"tools/call", "switch_output", `"name":"switch_output","arguments":{}`},
		{"tools/call", "release_output", `"name":"release_output","arguments":{}`},
		{"tools/call", "emergency_stop", `"name":"emergency_stop","arguments":{}`},
		{"resources/read", "agentsite:///x/y", `"uri":"agentsite:///x/y"`},
		{"prompts/get", "check_up", `"name":"check_up"`}, {"prompts/get", "overnight", `"name":"overnight","arguments":{"point":"x/y"}`},
		{"completion/complete", "", `"ref":{"type":"ref/resource","uri":"agentsite:///{device}/{point}"},"argument":{"name":"device","value":""}`},
		{"completion/complete", "", `"ref":{"type":"ref/resource","uri":"agentsite:///{device}/{point}"},"argument":{"name":"point","value":""}`},
		{"completion/complete", "", `"ref":{"type":"ref/prompt","name":"overnight"},"argument":{"name":"point","value":""}`},
		{"owner/revoke", "", `"name":"shy"`},
	}...) {
		params := meta
		if c.params != "" {
			params += "," + c.params
		}
		body := `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":{` + params + `}}`
		_, answer := r.Post(t, body, "Authorization", "Bearer "+secret, "Mcp-Method", c.method, "Mcp-Name", c.name)
		for _, word := range []string{"box", "humidity", "pressure", "local"} {
			if strings.Contains(answer, word) && !(word == "local" && strings.Contains(answer, "an owner's")) {
				t.Errorf("%s %s tells of %s: %s", c.method, c.params, word, answer)
			}
		}
		if answer == "" {
			t.Errorf("%s %s has no answer", c.method, c.params)
		}
	}
	for _, path := range []string{"/metrics", "/", "/healthz"} {
		req, _ := http.NewRequest("GET", r.URL+path, nil)
		req.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		for _, word := range []string{"box", "humidity", "pressure", "relay", "process_", "agentsite_returns_total", "agentsite_calls"} {
			if strings.Contains(string(b), word) {
				t.Errorf("%s tells of %s: %s", path, word, b)
			}
		}
	}
	if r.State() != "off" {
		t.Error("the relay moved")
	}
}

// TestFleetRevokesUnlisted: "fleet revoke" ends also what a key holds and its site does not list: a delegation that
// was not presented yet.
func TestFleetRevokesUnlisted(t *testing.T) {
	r := harness.StartHTTPSAt(t, harness.TempDir(t), "127.0.0.1:"+harness.FreePort(t))
	if _, err := r.CLI(t, "clock", "--set"); err != nil {
		t.Fatal(err)
	}
	ann, ben, cleo := harness.NewPerson(t), harness.NewPerson(t), harness.NewPerson(t)
	did := func(p harness.Person) string { return p.Key(t).ID().String() }
	ann.MustCLI(t, "claim", r.Invitation(t).String())
	ben.MustCLI(t, "accept", ann.MustCLI(t, "grant", did(ben), "read *", "--site", "shed"))
	cleo.MustCLI(t, "accept", ben.MustCLI(t, "delegate", "shed", did(cleo), "read *"))
	ann.MustCLI(t, "fleet", "revoke", did(cleo)) // before she presents it
	if out, err := cleo.CLI(t, "read", "--site", "shed"); err == nil {
		t.Error("a revoked key reads:", out)
	}
	ben.MustCLI(t, "read", "--site", "shed")
}
