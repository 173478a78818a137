//go:build e2e && linux

package internet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// level is the resource use of a process.
type level struct {
	heap        float64 // MB
	goroutines  int
	descriptors int
}

func (l level) String() string {
	return fmt.Sprintf("heap %.1f MB, %d goroutines, %d descriptors", l.heap, l.goroutines, l.descriptors)
}

// above reports whether that is more than what there was, by more than chance.
func (l level) above(was level) bool {
	return l.heap > 1.2*was.heap+0.5 || l.goroutines > was.goroutines+was.goroutines/10+5 || l.descriptors > was.descriptors+5
}

// levelled is the program with testdata/level in it.
func levelled(t *testing.T) (built, levels string) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	levels = harness.TempDir(t)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "cmd/agentsite/e2e_level.go"): filepath.Join(root, "cmd/internal/e2e/internet/testdata/level/level.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(levels, "overlay"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	built = filepath.Join(levels, "agentsite")
	build := exec.Command("go", "build", "-overlay", filepath.Join(levels, "overlay"), "-o", built, "./cmd/agentsite")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return built, levels
}

// levelOf asks such a program.
func levelOf(t *testing.T, levels string, pid int) (l level) {
	t.Helper()
	file := filepath.Join(levels, fmt.Sprint(pid))
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	var heap int
	harness.WaitFor(t, time.Minute, "it says what it holds", func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		_, err = fmt.Sscan(string(text), &heap, &l.goroutines)
		return err == nil
	})
	os.Remove(file)
	l.heap = float64(heap) / (1 << 20)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	l.descriptors = len(open)
	return l
}

// TestLevel is for SOAK=1: half an hour of hostile strangers, each half minute others, of
// another relay that begins anew each minute, and of calls. In the end the site and the
// relay that goes on hold no more than after five minutes.
func TestLevel(t *testing.T) {
	if os.Getenv("SOAK") == "" {
		t.Skip("SKIPPED: it takes half an hour; SOAK=1 runs it")
	}
	var levels string
	harness.Need(t, "the program", harness.Program)
	defer func(was string) { harness.Program = was }(harness.Program)
	harness.Program, levels = levelled(t)
	t.Setenv("E2E_LEVEL", levels)

	f := newFar(t)
	other := harness.PublicRelay{Folder: harness.TempDir(t)}
	other.Host, other.IP = f.Public()
	other.Start(t)
	f.relay.Addresses = append(f.relay.Addresses, other.Addresses...)
	f.realm = f.newRealm(t, "home")
	c := f.relayed(t, 1, 1)
	c.claimed(t)
	site := c.sites[0]
	var machines []role
	var on []string
	for range 4 {
		host, ip := f.Public()
		on = append(on, host)
		machines = append(machines, role{What: "hostile", Relay: f.relay.Addresses[:2], Sites: c.dids(t), IP: ip, Keys: 10})
	}
	calls, failed := 0, 0
	press := func(d time.Duration) {
		restart := time.Now()
		for begun := time.Now(); time.Since(begun) < d; {
			var hostile []*actor
			for i, m := range machines {
				hostile = append(hostile, act(t, on[i], m))
			}
			for half := time.Now(); time.Since(half) < 30*time.Second; time.Sleep(time.Second) {
				calls++
				if out, err := c.ann.CLI(t, "--site=shed-0", "read", "den/temperature"); err != nil {
					failed++
					t.Logf("%s %v", out, err)
				}
			}
			for _, a := range hostile {
				a.end()
			}
			if time.Since(restart) > time.Minute {
				restart = time.Now()
				other.Kill()
				other.Start(t)
			}
		}
		time.Sleep(2 * time.Minute) // as long as anything lasts that nobody uses
	}
	names := []string{"the site", "the relay"}
	measured := func(when string) (all []level) {
		for i, pid := range []int{site.Cmd.Process.Pid, f.relay.Cmd.Process.Pid} {
			all = append(all, levelOf(t, levels, pid))
			t.Logf("%s, %s: %v, resident %.1f MB", when, names[i], all[i], harness.Status(t, pid, "VmRSS:")/1024)
		}
		return all
	}
	const whole = 30 * time.Minute
	measured("at first")
	press(whole / 6)
	early := measured("early")
	press(whole - whole/6)
	late := measured("in the end")
	t.Logf("%d of %d calls failed", failed, calls)
	for i := range late {
		if late[i].above(early[i]) {
			t.Errorf("%s holds more: %v, and had %v", names[i], late[i], early[i])
		}
	}
}
