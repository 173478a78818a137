//go:build e2e

package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// relay is a site with one relay, whose state a file beside the processes shows as a
// pin would that keeps its level.
type RelaySite struct {
	*Site
	Witness string
}

func StartRelay(t *testing.T, devices ...string) *RelaySite {
	t.Helper()
	config, witness := RelayConfig(t, devices...)
	return &RelaySite{Start(t, config, Need(t, "the program", Program)), witness}
}

// relayConfig is a configuration with the relay and other devices.
func RelayConfig(t *testing.T, devices ...string) (config, witness string) {
	witness = filepath.Join(TempDir(t), "outputs")
	devices = append([]string{"box: { driver: sim, model: relay, min_off: 0s, outputs_file: " + witness + " }"}, devices...)
	return "site: { name: relay }\ndevices:\n  " + strings.Join(devices, "\n  ") + "\n", witness
}

func (r *RelaySite) SwitchOn(t *testing.T) {
	t.Helper()
	WaitFor(t, 20*time.Second, "the relay switches", func() bool {
		code, answer := r.Post(t, ToolCall("switch_output", `{"output":"box/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
		return code == 200 && strings.Contains(answer, `"seconds_left":`)
	})
	if r.State() != "on" {
		t.Fatal("the relay is not on")
	}
}

func (r *RelaySite) State() string {
	value, _ := ReadWitness(r.Witness)
	return value
}

// look is what a witness of one output says, and when that was written.
func ReadWitness(witness string) (value string, at time.Time) {
	b, _ := os.ReadFile(witness)
	words := strings.Fields(string(b))
	if len(words) != 3 {
		return "", at
	}
	n, _ := strconv.ParseInt(words[2], 10, 64)
	return words[1], time.Unix(0, n)
}

// off measures until the relay is off.
func (r *RelaySite) WaitForOff() time.Duration {
	begun := time.Now()
	for r.State() != "off" && time.Since(begun) < 20*time.Second {
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

// guard is the process that drives the site's outputs.
func (r *Site) Guard(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.Folder, "guard.lock"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
