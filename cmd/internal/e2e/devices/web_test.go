//go:build e2e

package devices

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/state"
)

// freePort returns a port that nothing listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serve runs a script of testdata with npm's packages until the test ends or end is called. It returns its standard
// input, once the script is ready.
func serve(t *testing.T, name string, port int) (input io.Writer, end func()) {
	t.Helper()
	modules := harness.Need(t, "npm's packages", os.Getenv("NPM_MODULES"))
	node := harness.Need(t, "Node 22", harness.NodeProgram)
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // imports are resolved from where a module is
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, name, strconv.Itoa(port)) // it has to outlive the site, which ends before t.Context
	cmd.Dir, cmd.Stderr = dir, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(end)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			go io.Copy(io.Discard, out)
			return in, end
		}
	}
	t.Fatalf("%s has not started", name)
	return nil, nil
}

// waitReading waits until the command line says a word about a point.
func waitReading(t *testing.T, r *harness.Site, point, word string) {
	t.Helper()
	says := ""
	harness.WaitFor(t, time.Minute, point+" says "+word, func() bool {
		says, _ = r.CLI(t, "read", point)
		return strings.Contains(says, word)
	})
}

// move moves an output as soon as the site does it.
func move(t *testing.T, r *harness.Site, output, value string) {
	t.Helper()
	var err error
	defer func() {
		if t.Failed() {
			t.Log(output, err)
		}
	}()
	harness.WaitFor(t, time.Minute, output+" moves", func() bool {
		_, err = r.CLI(t, "set", output, value, "--for", "10m")
		return err == nil
	})
}

// TestThing: properties of a Thing by node-wot are points. Somebody at the Thing, and its end, are noticed, and the
// output is at safe once it is back.
func TestThing(t *testing.T) {
	port := freePort(t)
	somebody, end := serve(t, "thing.mjs", port)
	r := harness.Start(t, fmt.Sprintf(`site: { name: home }
devices:
  lamp:
    driver: thing
    url: http://127.0.0.1:%d/lamp
    every: 300ms
    inputs: { warmth: { property: temperature, unit: Cel, range: -20..120 } }
    outputs: { light: { safe: off }, brightness: { unit: '%%', range: 0..100, safe: 0 } }
`, port), harness.Need(t, "the program", harness.Program))
	waitReading(t, r, "lamp/warmth", "21.5")
	move(t, r, "lamp/brightness", "40.4") // an integer there
	waitReading(t, r, "lamp/brightness", "40.4")
	move(t, r, "lamp/light", "on")
	fmt.Fprintln(somebody, "light false")
	waitReading(t, r, "lamp/light", "off")
	move(t, r, "lamp/light", "on")
	end()
	waitReading(t, r, "lamp/warmth", "fault")
	serve(t, "thing.mjs", port)
	waitReading(t, r, "lamp/light", "off")
	move(t, r, "lamp/light", "on")
	r.Stop(t) // while the Thing is there
}

// TestMCPServer: a number of a server by the official TypeScript SDK is an output.
func TestMCPServer(t *testing.T) {
	port := freePort(t)
	serve(t, "mcp.mjs", port)
	r := harness.Start(t, fmt.Sprintf(`site: { name: home }
devices:
  fan:
    driver: mcp
    url: http://127.0.0.1:%d/mcp
    key_file: %s
    every: 300ms
    outputs:
      speed: { tool: get_fan, path: speed, set_tool: set_fan, set_arguments: '{"speed": {value}}', unit: '%%', range: 0..100, safe: 0 }
`, port, secret(t, "s3cret")), harness.Need(t, "the program", harness.Program))
	move(t, r, "fan/speed", "55.5")
	waitReading(t, r, "fan/speed", "55.5")
}

func secret(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "it.key")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPointOfAnotherSite: a point of a site is a device of another, as a Thing and by its MCP server. The lease of the
// other site is renewed; once the one that holds it is killed, the other returns its output to safe.
func TestPointOfAnotherSite(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	shed := harness.Start(t, `site: { name: shed }
devices:
  greenhouse: { driver: sim, every: 200ms, points: { heater: { min_off: 0s, lease: 4s }, vent: { min_off: 0s } } }
`, program)
	token, err := os.ReadFile(state.Folder(shed.Folder).Path(state.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	key := secret(t, strings.TrimSpace(string(token)))
	home := harness.Start(t, fmt.Sprintf(`site: { name: home }
devices:
  thing:
    driver: thing
    url: %[1]s/things/greenhouse
    key_file: %[2]s
    every: 300ms
    inputs: { temperature: { unit: Cel, range: -40..85 } }
    outputs: { heater: { safe: off, renew: 2s } }
  tools:
    driver: mcp
    url: %[1]s/mcp
    key_file: %[2]s
    every: 300ms
    inputs:
      humidity: { tool: read_points, arguments: '{"points":["greenhouse/humidity"]}', path: "readings[0].value", unit_path: "readings[0].unit", unit: '%%', range: 0..100 }
    outputs:
      vent:
        tool: read_points
        arguments: '{"points":["greenhouse/vent"]}'
        path: "readings[0].value"
        set_tool: set_level
        set_arguments: '{"output":"greenhouse/vent","value":{value}}'
        unit: '%%'
        range: 0..100
        safe: 0
        renew: 20s
`, shed.URL, key), program)
	waitReading(t, home, "thing/temperature", "°C")
	waitReading(t, home, "tools/humidity", "%")
	move(t, home, "tools/vent", "30")
	waitReading(t, shed, "greenhouse/vent", "30")
	move(t, home, "thing/heater", "on")
	waitReading(t, shed, "greenhouse/heater", " on")
	held := time.Now()
	harness.WaitFor(t, time.Minute, "the lease is renewed for longer than it is", func() bool {
		says, err := shed.CLI(t, "read", "greenhouse/heater")
		if err == nil && strings.Contains(says, " off") {
			t.Fatalf("it ended after %v: %s", time.Since(held), says)
		}
		return time.Since(held) > 9*time.Second
	})
	home.Kill(t)
	waitReading(t, shed, "greenhouse/heater", " off")
}
