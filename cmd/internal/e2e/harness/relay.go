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

// RelaySite is a site with one relay. A file beside the processes, the witness, has the state
// of the relay's pin.
type RelaySite struct {
	*Site
	Witness string
}

// StartRelay starts a site with the relay and other devices.
func StartRelay(t *testing.T, devices ...string) *RelaySite {
	t.Helper()
	config, witness := RelayConfig(t, devices...)
	return &RelaySite{Start(t, config, Need(t, "the program", Program)), witness}
}

// RelayConfig returns a configuration with the relay and other devices, and the path of the
// witness.
func RelayConfig(t *testing.T, devices ...string) (config, witness string) {
	witness = filepath.Join(TempDir(t), "outputs")
	devices = append([]string{"box: { driver: sim, model: relay, min_off: 0s, outputs_file: " + witness + " }"}, devices...)
	return "site: { name: relay }\ndevices:\n  " + strings.Join(devices, "\n  ") + "\n", witness
}

// SwitchOn switches the relay on for a minute.
func (r *RelaySite) SwitchOn(t *testing.T) {
	t.Helper()
	WaitFor(t, 20*time.Second, "the relay switches", func() bool {
		code, answer := r.Post(t, ToolCall("switch_output", `{"output":"box/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
		return code == 200 && strings.Contains(answer, MovedField)
	})
	if r.State() != "on" {
		t.Fatal("the relay is not on")
	}
}

// State returns the state of the pin: on, off, or "" before the first.
func (r *RelaySite) State() string {
	value, _ := ReadWitness(r.Witness)
	return value
}

// ReadWitness returns the value in the witness of one output, and when it was written.
func ReadWitness(witness string) (value string, at time.Time) {
	b, _ := os.ReadFile(witness)
	words := strings.Fields(string(b))
	if len(words) != 3 {
		return "", at
	}
	n, _ := strconv.ParseInt(words[2], 10, 64)
	return words[1], time.Unix(0, n)
}

// WaitForOff waits until the relay is off, for at most 20 s, and returns how long that took.
func (r *RelaySite) WaitForOff() time.Duration {
	begun := time.Now()
	for r.State() != "off" && time.Since(begun) < 20*time.Second {
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

// Guard returns the process ID of the site's guard.
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
