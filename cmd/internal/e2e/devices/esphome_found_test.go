//go:build e2e && linux

package devices

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"
)

const esphomeRole = "ESPHOME_KEYS"

// TestESPHomeRole is not a test: it is the nodes of TestESPHomeFound, which runs this binary again. Each key is one
// node.
func TestESPHomeRole(t *testing.T) {
	keys := os.Getenv(esphomeRole)
	if keys == "" {
		return // it is not run as a host
	}
	for i, key := range strings.Split(keys, ",") {
		n := esphomeKitchen()
		n.Key = strings.TrimPrefix(key, "none")
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", 6053+i))
		if err != nil {
			t.Fatal(err)
		}
		n.ServeAt(t, l)
	}
	select {}
}

// TestESPHomeFound: nodes that are switched on in a network are found and added by one command. That with a key is
// asked for it; then its sensors are points.
func TestESPHomeFound(t *testing.T) {
	program := harness.Need(t, "the program", harness.Program)
	b := bed.New(t)
	host := b.Host("10.77.0.50/24")
	a := b.Avahi(host, "kitchen")
	here := b.Host("10.77.0.100/24")
	data := harness.TempDir(t)
	file := filepath.Join(data, "agentsite.yaml")
	if err := os.WriteFile(file, []byte("site: { name: house }\nhttp: { https: none }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		argv := bed.On(here, append([]string{program}, args...)...)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = data
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}

	begun := time.Now() // the nodes are switched on
	argv := bed.On(host, os.Args[0], "-test.run=^TestESPHomeRole$")
	nodes := exec.Command(argv[0], argv[1:]...)
	nodes.Env = append(os.Environ(), esphomeRole+"=none,"+esphomeKey)
	if err := nodes.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Process.Kill(); _ = nodes.Wait() })
	a.Begin("avahi-publish -s plain _esphomelib._tcp 6053 mac=a4cf12010203 version=2026.10.0")
	a.Begin("avahi-publish -s secret _esphomelib._tcp 6054 mac=a4cf12010203 api_encryption=Noise_NNpsk0_25519_ChaChaPoly_SHA256")
	a.Until("6054", "avahi-browse -r -p -t _esphomelib._tcp | grep ^=")

	scanned := run("scan", "--write", "--config", file)
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plaintext: on", "sensor/air_temperature", "unit: \"Cel\"", "key_file"} {
		if !strings.Contains(string(written), want) {
			t.Fatalf("no %s in %s\nscan: %s", want, written, scanned)
		}
	}
	// The one thing that only the owner knows, of each file that the configuration names.
	for _, word := range strings.Fields(string(written)) {
		if name := strings.Trim(word, `",}`); strings.HasSuffix(name, ".key") {
			if err := os.WriteFile(filepath.Join(data, name), []byte(esphomeKey+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	argv = bed.On(here, program, "run", "--data", data, "--config", file, "--listen", "127.0.0.1:0")
	site := exec.Command(argv[0], argv[1:]...)
	site.Dir = data
	var log harness.LogBuffer
	site.Stderr = &log
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Process.Signal(os.Interrupt); _ = site.Wait() })
	good := 0
	harness.WaitFor(t, 2*time.Minute, "both nodes have a temperature", func() bool {
		var all struct {
			Readings []struct {
				Point   string
				Unit    string
				Value   any
				Quality string
			}
		}
		argv := bed.On(here, program, "read", "--data", data, "--json")
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil || json.Unmarshal(out, &all) != nil {
			return false
		}
		good = 0
		for _, r := range all.Readings {
			if strings.HasSuffix(r.Point, "/air_temperature") && r.Unit == "Cel" && r.Value == 21.3 && r.Quality == "good" {
				good++
			}
		}
		return good == 2
	})
	took := time.Since(begun)
	t.Logf("from power-on to the points: %v", took)
	if took > time.Minute {
		t.Errorf("it took %v", took)
	}
}
