//go:build e2e

// Package mcp tests MCP clients: the public suites, the Inspector, the SDK, a browser and agentsite connect.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/e2e/harness/npm"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestFirstConversation is the README's, through the program's own commands.
func TestFirstConversation(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	points, err := r.CLI(t, "points")
	if err != nil || !strings.Contains(points, "greenhouse/heater") || !strings.Contains(points, "host/uptime") {
		t.Fatalf("%v\n%s", err, points)
	}
	uptime := readValue(t, r, "host/uptime")
	harness.WaitFor(t, time.Minute, "the machine's uptime goes on", func() bool { return readValue(t, r, "host/uptime") != uptime })

	before := readValue(t, r, "greenhouse/temperature").(float64)
	harness.WaitFor(t, time.Minute, "the heater rests after a start, and then switches", func() bool {
		_, err = r.CLI(t, "set", "greenhouse/heater", "on", "--for", "5s")
		return err == nil
	})
	on := time.Now()
	if readValue(t, r, "greenhouse/heater") != true {
		t.Error("the heater is not on")
	}
	harness.WaitFor(t, time.Minute, "the heater goes off without anyone asking", func() bool { return readValue(t, r, "greenhouse/heater") == false })
	if held := time.Since(on); held > 30*time.Second {
		t.Errorf("it was on for %v", held)
	}
	harness.WaitFor(t, time.Minute, "the next sample shows that it is warmer", func() bool {
		return readValue(t, r, "greenhouse/temperature").(float64) >= before+0.5
	})
}

// value reads a point with the command line.
func readValue(t testing.TB, r *harness.Site, point string) any {
	t.Helper()
	out, err := r.CLI(t, "read", "--json", point)
	var res struct {
		Readings []struct{ Value any }
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &res)
	}
	if err != nil || len(res.Readings) != 1 {
		t.Fatalf("%s: %v\n%s", point, err, out)
	}
	return res.Readings[0].Value
}

// TestCBOR makes the same calls in both encodings and gets the same values.
func TestCBOR(t *testing.T) {
	r := harness.Start(t, harness.ThirtyDevices("1h"), harness.Need(t, "the program", harness.Program)) // so that nothing changes in between
	inJSON, inCBOR := r.Client(t, false), r.Client(t, true)
	for tool, args := range map[string]string{
		"list_points": `{}`, "switch_output": `{"output":"relay-01/relay","on":false}`, "release_output": `{"output":"relay-02/relay"}`,
		"emergency_stop": `{}`,
	} {
		want, err := inJSON.Ask(t.Context(), tool, []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		got, err := inCBOR.Ask(t.Context(), tool, []byte(args))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(lasting(plain(t, want.JSON)), lasting(plain(t, got.JSON))) || !reflect.DeepEqual(want.Texts, got.Texts) {
			t.Errorf("%s: %+v in CBOR, %+v in JSON", tool, got, want)
		}
	}
	for _, c := range []string{`{"points":["nowhere/at_all"]}`, `{"Points":[]}`, `{"points":5}`} {
		_, want := inJSON.Ask(t.Context(), "read_points", []byte(c))
		_, got := inCBOR.Ask(t.Context(), "read_points", []byte(c))
		if want == nil || got == nil || want.Error() != got.Error() {
			t.Errorf("%s: %v in CBOR, %v in JSON", c, got, want)
		}
	}
}

// lasting removes the ages of what was written and measured, which grow.
func lasting(tree any) any {
	all, _ := tree.(map[string]any)
	outputs, _ := all["outputs"].([]any)
	for _, o := range outputs {
		for _, name := range []string{"set", "measured"} {
			output, _ := o.(map[string]any)
			if value, ok := output[name].(map[string]any); ok {
				delete(value, "age_seconds")
			}
		}
	}
	return tree
}

func plain(t *testing.T, text []byte) (tree any) {
	t.Helper()
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestSDKClient lists and calls with the official Go SDK's client, over HTTP, over HTTPS with a
// token and over the pipe, in the newest revision and the one before.
func TestSDKClient(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", harness.TempDir(t))
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program), "run", "--listen-https", "127.0.0.1:0")
	at := r.HTTPS(t)
	token, _ := r.AddToken(t, "sdk", "read *, set *, stop")
	harness.WaitFor(t, time.Minute, "the lamp rests after a start, and then may switch", func() bool {
		_, err := r.CLI(t, "set", "greenhouse/lamp", "on", "--for", "1s")
		return err == nil
	})
	for carrier, transport := range map[string]func() mcp.Transport{
		"http": func() mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: npm.StartProxy(t, r.URL, r.Token, nil) + "/mcp"}
		},
		"https": func() mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: at.URL + "/mcp", HTTPClient: at.Client(t, token)}
		},
		"stdio": func() mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command(harness.Program, "connect", "--data", r.Folder)}
		},
	} {
		for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
			t.Run(carrier+"/"+version, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
				s, err := c.Connect(ctx, transport(), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if got := s.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("%s was agreed", got)
				}
				tools, err := s.ListTools(ctx, nil)
				if err != nil || len(tools.Tools) < 8 {
					t.Fatalf("%+v, %v", tools, err)
				}
				res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "set_level", Arguments: map[string]any{"output": "greenhouse/vent", "value": 40, "for_seconds": 1}})
				if err != nil || res.IsError || !strings.Contains(fmt.Sprint(res.StructuredContent), "value:40") {
					t.Errorf("%+v, %v", res, err)
				}
				res, err = s.CallTool(ctx, &mcp.CallToolParams{Name: "set_level", Arguments: map[string]any{"output": "greenhouse/vent", "value": 140}})
				if err != nil || !res.IsError {
					t.Errorf("140 %%: %+v, %v", res, err)
				}
				if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "release_output", Arguments: map[string]any{"output": "greenhouse/vent"}}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestARMv6 runs the binary for the smallest board under qemu-user, as that board's
// processor, asks it over HTTP, and claims it.
func TestARMv6(t *testing.T) {
	// Without outputs: an emulated program cannot start another, as it does for a guard.
	r := harness.Start(t, "site: { name: arm }\ndevices:\n  hall: { driver: sim, model: climate }\n", "qemu-arm-static", "-cpu", "arm1176", harness.Need(t, "qemu-arm-static", harness.ARMv6Program), "run", "--listen-https", "127.0.0.1:0")
	if code, answer := r.Post(t, harness.ToolCall("read_points", `{"points":["hall/temperature"]}`)); code != 200 || !strings.Contains(answer, `"unit":"Cel"`) {
		t.Errorf("%d %s", code, answer)
	}
	if _, err := r.Client(t, true).Tools(t.Context()); err != nil {
		t.Error(err)
	}
	ann := harness.NewPerson(t)
	ann.Key(t)
	begun := time.Now()
	ann.MustCLI(t, "claim", r.Invitation(t).String())
	t.Logf("claimed in %v", time.Since(begun).Round(time.Millisecond))
	if out := ann.MustCLI(t, "read", "--site", "arm"); !strings.Contains(out, "hall/temperature") {
		t.Error(out)
	}
}
