//go:build e2e

package access

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestHostile sends a site what it must refuse, each with what has to be said of
// it, while a good caller goes on undisturbed. Nothing may move, and nothing crash.
func TestHostile(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	read := harness.ToolCall("read_points", `{"points":["greenhouse/heater"]}`)
	good := make(chan error, 1)
	stop := make(chan struct{})
	go func() { good <- keepCalling(r, read, stop) }()

	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	switchOn := func(args string) string { return harness.ToolCall("switch_output", args) }
	named := func(tool string) []string { return []string{"Mcp-Name", tool} }
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		says    string
	}{
		"no token":               {read, []string{"Authorization", ""}, 401, "token"},
		"wrong token":            {read, []string{"Authorization", "Bearer 0000"}, 401, "unknown or revoked token"},
		"rebinding host":         {read, []string{"Host", "evil.example:80"}, 403, "evil.example:80"},
		"cross-site origin":      {read, []string{"Origin", "https://evil.example"}, 403, "may not call"},
		"null origin":            {read, []string{"Origin", "null"}, 403, "may not call"},
		"not JSON":               {"{", nil, 400, "not valid JSON"},
		"nothing":                {"", nil, 400, "not valid JSON"},
		"wrong type of content":  {read, []string{"Content-Type", "text/plain"}, 415, "application/json"},
		"JSON as CBOR":           {read, []string{"Content-Type", "application/cbor"}, 400, "error"},
		"batch":                  {"[" + read + "]", nil, 400, "one message at a time"},
		"duplicate key":          {strings.Replace(read, `"id":1`, `"id":1,"id":2`, 1), nil, 400, "twice"},
		"a key in another case":  {strings.Replace(read, `"method"`, `"Method"`, 1), nil, 400, "method"},
		"nested brackets":        {strings.Repeat("[", 2_000_000), nil, 413, "at most"},
		"nested within the size": {strings.Repeat("[", 200_000), nil, 400, "nests deeper"},
		"too long":               {`{"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "at most"},
		"no version header":      {read, []string{"Mcp-Protocol-Version", ""}, 400, "Mcp-Protocol-Version"},
		"unknown version":        {strings.Replace(read, "2026-07-28", "2031-01-01", 1), []string{"Mcp-Protocol-Version", "2031-01-01"}, 400, "2026-07-28"},
		"header and body differ": {read, []string{"Mcp-Name", "switch_output"}, 400, "Header mismatch"},
		"no _meta":               {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{"Mcp-Method", "tools/list"}, 400, "_meta"},
		"unknown method":         {`{"jsonrpc":"2.0","id":1,"method":"sudo","params":{` + meta + `}}`, []string{"Mcp-Method", "sudo", "Mcp-Name", ""}, 404, "no method"},
		"the owner's method":     {`{"jsonrpc":"2.0","id":1,"method":"owner/reset","params":{` + meta + `}}`, []string{"Mcp-Method", "owner/reset", "Mcp-Name", ""}, 404, "owner"},
		"unknown tool":           {harness.ToolCall("rm", `{}`), named("rm"), 200, "Unknown tool"},
		"unknown point":          {harness.ToolCall("read_points", `{"points":["a/b"]}`), nil, 200, "there is no"},
		"unknown output":         {switchOn(`{"output":"greenhouse/door","on":true}`), named("switch_output"), 200, "greenhouse/heater"},
		"unknown argument":       {switchOn(`{"output":"greenhouse/heater","on":true,"force":true}`), named("switch_output"), 200, "force: there is no such field"},
		"missing argument":       {switchOn(`{"output":"greenhouse/heater"}`), named("switch_output"), 200, "on is missing"},
		"wrong type":             {switchOn(`{"output":"greenhouse/heater","on":"true"}`), named("switch_output"), 200, "on: must be true or false"},
		"for nothing":            {switchOn(`{"output":"greenhouse/heater","on":true,"for_seconds":0}`), named("switch_output"), 200, "for_seconds"},
		"for less than nothing":  {switchOn(`{"output":"greenhouse/heater","on":true,"for_seconds":-5}`), named("switch_output"), 200, "for_seconds"},
		"for ever":               {switchOn(`{"output":"greenhouse/heater","on":true,"for_seconds":1e300}`), named("switch_output"), 200, "for_seconds"},
		"for too long":           {switchOn(`{"output":"greenhouse/heater","on":true,"for_seconds":86400}`), named("switch_output"), 200, "at most 10m"},
		"beyond a float":         {harness.ToolCall("set_level", `{"output":"greenhouse/vent","value":1e999}`), named("set_level"), 200, "value"},
		"not a number":           {harness.ToolCall("set_level", `{"output":"greenhouse/vent","value":NaN}`), named("set_level"), 400, "not valid JSON"},
		"out of range":           {harness.ToolCall("set_level", `{"output":"greenhouse/vent","value":101}`), named("set_level"), 200, "0..100"},
	} {
		t.Run(name, func(t *testing.T) {
			code, answer := r.Post(t, c.body, c.headers...)
			if code != c.status || !strings.Contains(answer, c.says) || strings.Contains(answer, `"isError":false`) {
				t.Errorf("%d %s\nwant %d with %q", code, answer, c.status, c.says)
			}
			if code == 200 && !strings.Contains(answer, `"error"`) && !strings.Contains(answer, `"isError":true`) {
				t.Errorf("it was done: %s", answer)
			}
		})
	}

	t.Run("a thousand idle connections", func(t *testing.T) {
		var idle []net.Conn
		defer func() {
			for _, c := range idle {
				c.Close()
			}
		}()
		for range 1000 {
			c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			idle = append(idle, c)
		}
		if code, answer := r.Post(t, read); code != 200 {
			t.Errorf("a good caller among them: %d %s", code, answer)
		}
	})

	close(stop)
	if err := <-good; err != nil {
		t.Errorf("the good caller was disturbed: %v", err)
	}
	if _, answer := r.Post(t, harness.ToolCall("site_status", "{}"), "Mcp-Name", "site_status"); !strings.Contains(answer, `"outputs_away_from_safe":[]`) {
		t.Errorf("something moved: %s", answer)
	}
	if log := r.Log.String(); strings.Contains(log, "panic") {
		t.Errorf("something panicked:\n%s", log)
	}
}

// keepCalling calls until stop, over one connection at a time, and returns the
// first thing that went wrong.
func keepCalling(r *harness.Site, body string, stop <-chan struct{}) error {
	c := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(5 * time.Millisecond):
		}
		req, err := http.NewRequest("POST", r.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + r.Token, "Content-Type": "application/json",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read_points",
		} {
			req.Header.Set(name, value)
		}
		res, err := c.Do(req)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || !strings.Contains(string(b), `"value":false`) {
			return fmt.Errorf("%d %s %v", res.StatusCode, b, err)
		}
	}
}

// TestStopGetsThrough stops a site over HTTP and through the owner's socket. Meanwhile half
// requests with a valid token take as many connections as they can, and clients that do not read
// flood the agents' socket.
func TestStopGetsThrough(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the heater switches", func() bool {
		_, err := r.CLI(t, "set", "greenhouse/heater", "on", "--for", "5m")
		return err == nil
	})
	host := strings.TrimPrefix(r.URL, "http://")
	half := "POST /mcp HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + r.Token + "\r\nContent-Type: application/json\r\n" +
		"Mcp-Protocol-Version: 2026-07-28\r\nContent-Length: 100\r\n\r\n{"
	for range 300 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, half)
	}
	var floods sync.WaitGroup
	defer floods.Wait()
	for i := range 64 {
		c, err := net.Dial("unix", filepath.Join(r.Folder, "agents.sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		floods.Go(func() {
			if i%2 == 0 {
				io.WriteString(c, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}`+"\n")
			}
			for n := 1; ; n++ {
				if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`+"\n", n); err != nil {
					return
				}
			}
		})
	}
	for _, way := range [][]string{{"stop", "--url", r.URL}, {"stop"}} {
		if out, err := r.CLI(t, way...); err != nil || !strings.Contains(out, "safe value") {
			t.Errorf("%q: %s %v", way, out, err)
		}
	}
	if most := harness.Status(t, r.Cmd.Process.Pid, "VmHWM:") / 1024; most > 300 {
		t.Errorf("it took %.0f MB, as if nothing bounded it", most)
	} else {
		t.Logf("it took %.0f MB at most", most)
	}
}

// TestClumsy: each mistake before a site runs is refused with advice.
func TestClumsy(t *testing.T) {
	r := harness.Start(t, "", harness.Need(t, "the program", harness.Program))
	notAFolder := filepath.Join(harness.TempDir(t), "file")
	write(t, notAFolder, "")
	yaml := func(text string) string {
		file := filepath.Join(harness.TempDir(t), "bad.yaml")
		write(t, file, text)
		return file
	}
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"a second run on one folder": {[]string{"--data", r.Folder}, []string{`the site "demo"`, "--data"}},
		"a folder that is none":      {[]string{"--data", notAFolder}, []string{"data folder", "--data"}},
		"a port that is taken":       {[]string{"--data", harness.TempDir(t), "--listen", strings.TrimPrefix(r.URL, "http://")}, []string{"--listen"}},
		"all networks":               {[]string{"--data", harness.TempDir(t), "--listen", "0.0.0.0:0"}, []string{"127.0.0.1"}},
		"a typo":                     {[]string{"--data", harness.TempDir(t), "--config", yaml("site: { name: x }\ndevices:\n  a: { drivr: sim }\n")}, []string{"bad.yaml:3:", "driver"}},
		"a duplicate key":            {[]string{"--data", harness.TempDir(t), "--config", yaml("site: { name: x }\nsite: { name: y }\n")}, []string{"bad.yaml:2:"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(harness.Program, append([]string{"run"}, c.args...)...)
			cmd.Dir = harness.TempDir(t)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("it ran: %s", out)
			}
			for _, s := range c.says {
				if !strings.Contains(string(out), s) {
					t.Errorf("it does not say %q: %s", s, out)
				}
			}
		})
	}
}

// TestStop ends a site while an output is on, and checks by a witness outside the process that it
// is safe; then again with the emergency stop.
func TestStop(t *testing.T) {
	witness := filepath.Join(harness.TempDir(t), "outputs")
	r := harness.Start(t, "site: { name: stop }\ndevices:\n  box: { driver: sim, model: relay, min_off: 0s, outputs_file: "+witness+" }\n", harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the relay switches", func() bool {
		_, err := r.CLI(t, "set", "box/relay", "on", "--for", "1m")
		return err == nil
	})
	if got := slurp(t, witness); !strings.Contains(got, "on") {
		t.Fatalf("the witness saw %q", got)
	}
	r.Stop(t)
	if got := slurp(t, witness); strings.Contains(got, "on") {
		t.Errorf("after the end the witness saw %q", got)
	}

	again := exec.Command(harness.Program, "run", "--data", r.Folder, "--config", filepath.Join(r.Folder, "agentsite.yaml"), "--listen", "127.0.0.1:0")
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { again.Process.Signal(syscall.SIGTERM); again.Wait() }()
	harness.WaitFor(t, time.Minute, "the relay switches again", func() bool {
		_, err := r.CLI(t, "set", "box/relay", "on", "--for", "1m")
		return err == nil
	})
	if _, err := r.CLI(t, "stop"); err != nil {
		t.Error(err)
	}
	if got := slurp(t, witness); strings.Contains(got, "on") {
		t.Errorf("after the emergency stop the witness saw %q", got)
	}
	if _, err := r.CLI(t, "set", "box/relay", "on"); err == nil || !strings.Contains(err.Error(), "emergency stop") {
		t.Errorf("a move while stopped: %v", err)
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func slurp(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
