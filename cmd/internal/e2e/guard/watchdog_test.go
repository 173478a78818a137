//go:build e2e && linux

package guard

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// watchdogRelay is a relay whose guard feeds a watchdog: a pipe here, in which everything
// is seen that a real one would be told.
func watchdogRelay(t *testing.T, file string) *harness.RelaySite {
	t.Helper()
	config, witness := harness.RelayConfig(t)
	config = strings.Replace(config, "{ name: relay }", "{ name: relay, watchdog: "+file+" }", 1)
	return &harness.RelaySite{Site: harness.Start(t, config, harness.Need(t, "the program", harness.Program)), Witness: witness}
}

// TestWatchdog: it is fed while the guard's loop comes round, over a restart too, and
// switched off at an orderly end.
func TestWatchdog(t *testing.T) {
	file := filepath.Join(harness.TempDir(t), "watchdog")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	told := func(most time.Duration) string {
		buf := make([]byte, 100)
		pipe.SetReadDeadline(time.Now().Add(most))
		n, _ := pipe.Read(buf)
		return string(buf[:n])
	}
	const fed, patience = "\x00", 5500 * time.Millisecond // a third of its time, and a bit
	r := watchdogRelay(t, file)
	for range 2 {
		if got := told(patience); got != fed {
			t.Fatalf("it was told %q\n%s", got, r.Log)
		}
	}
	t.Log("a guard that stands still: nobody asks for it, and nobody else sees to it")
	guard := r.Guard(t)
	syscall.Kill(guard, syscall.SIGSTOP)
	if got := told(patience); got != "" {
		t.Errorf("it was told %q\n%s", got, r.Log)
	}
	syscall.Kill(guard, syscall.SIGKILL)
	if got := told(patience); got != fed {
		t.Errorf("it was told %q", got)
	}
	r.SwitchOn(t)
	r.Cmd.Process.Signal(syscall.SIGTERM)
	<-r.Ended
	r.Cmd.Process = nil
	if got := strings.TrimLeft(told(time.Second), fed); got != "V" || r.State() != "off" {
		t.Errorf("at the end it was told %q, and the relay is %s", got, r.State())
	}
}

// TestWatchdogThatIsNotThere: nothing moves without it, and the log says what to do.
func TestWatchdogThatIsNotThere(t *testing.T) {
	r := watchdogRelay(t, "/dev/no-such-watchdog")
	_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"box/relay","on":true}`), "Mcp-Name", "switch_output")
	if !strings.Contains(answer, `"isError":true`) || r.State() != "off" {
		t.Errorf("the relay is %s: %s", r.State(), answer)
	}
	if !strings.Contains(r.Log.String(), "/dev/no-such-watchdog") || !strings.Contains(r.Log.String(), "remove site.watchdog") {
		t.Errorf("the log does not say why:\n%s", r.Log)
	}
	r.Cmd.Process.Kill() // no process is left to end it in order
	<-r.Ended
	r.Cmd.Process = nil
}
