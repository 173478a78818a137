//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// alone runs the test again in a mount namespace of its own, where it may mount what it
// likes, and reports whether this is that run.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv("E2E_ALONE") != "" {
		return true
	}
	root := ""
	if os.Geteuid() == 0 {
		root = "root"
	}
	need(t, "the right to mount", root)
	self := exec.Command("unshare", "--mount", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	self.Env = append(os.Environ(), "E2E_ALONE=1")
	out, err := self.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	return false
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestDiskFails: a data folder that takes nothing more keeps no output from safe, and
// lets none leave it.
func TestDiskFails(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, tt := range []struct {
		name   string
		mount  func(t *testing.T, data string)
		breaks func(t *testing.T, data string) (mend func())
		says   string
	}{
		{"full", func(t *testing.T, data string) { run(t, "mount", "-t", "tmpfs", "-o", "size=1m", "none", data) }, fill, "no space left on device"},
		{"read-only", mountLoop, breakLoop, "read-only file system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, dir := folder(t), folder(t)
			t.Setenv("RUNTIME_DIRECTORY", dir)
			tt.mount(t, data)
			t.Cleanup(func() { run(t, "umount", "--lazy", data) })
			config := "site: { name: disk }\ndevices:\n"
			for _, name := range []string{"a", "b", "c", "d"} {
				config += fmt.Sprintf("  %s: { driver: sim, model: relay, min_off: 0s, outputs_file: %s/%[1]s }\n", name, dir)
			}
			r := startIn(t, data, config, nil, need(t, "the program", program))
			shows := func(name, value string) {
				t.Helper()
				until(t, 10*time.Second, name+" is "+value, func() bool { v, _ := look(filepath.Join(dir, name)); return v == value })
			}
			move := func(name string, seconds float64) string {
				t.Helper()
				_, answer := r.post(t, call("switch_output", fmt.Sprintf(`{"output":"%s/relay","on":true,"for_seconds":%v}`, name, seconds)), "Mcp-Name", "switch_output")
				return answer
			}
			until(t, 20*time.Second, "outputs move", func() bool { return strings.Contains(move("a", 60), switched) })
			for name, seconds := range map[string]float64{"b": 60, "c": 3} {
				if answer := move(name, seconds); !strings.Contains(answer, switched) {
					t.Fatal(answer)
				}
				shows(name, "on")
			}
			mend := tt.breaks(t, data)
			until(t, 20*time.Second, "what is left of the last block is used up", func() bool { return !strings.Contains(move("a", 60), switched) })
			for range 3 {
				if answer := move("d", 60); !strings.Contains(answer, `"agentsite/fault":"unavailable"`) || !strings.Contains(answer, "the site's journal cannot be written ("+tt.says+"), so nothing moves away from safe; have the owner see to its disk") {
					t.Errorf("a new move: %s", answer)
				}
				if answer := move("a", 60); !strings.Contains(answer, `"agentsite/fault":"unavailable"`) {
					t.Errorf("a renewal: %s", answer)
				}
			}
			shows("d", "off")
			if _, answer := r.post(t, call("release_output", `{"output":"a/relay"}`), "Mcp-Name", "release_output"); !strings.Contains(answer, `"value":false`) {
				t.Errorf("a release: %s", answer)
			}
			shows("a", "off")
			shows("c", "off") // its lease is over
			shows("b", "on")
			if _, answer := r.post(t, call("emergency_stop", `{}`), "Mcp-Name", "emergency_stop"); !strings.Contains(answer, `"emergency_stop":true`) {
				t.Errorf("the emergency stop: %s", answer)
			}
			shows("b", "off")
			if n := strings.Count(r.Log.String(), "the journal cannot be written"); n < 1 || n > 2 {
				t.Errorf("the log says it %d times:\n%s", n, r.Log)
			}
			if mend == nil { // nothing but another disk would; the stop outlives this one
				r.Stop(t)
				if _, err := os.Stat(filepath.Join(data, "armed")); err != nil {
					t.Errorf("the latch is not where a read-only disk leaves it: %v", err)
				}
				if flags, _ := filepath.Glob(filepath.Join(dir, "agentsite-*.stopped")); len(flags) != 1 {
					t.Errorf("the stop left the flags %v", flags)
				}
				return
			}
			mend()
			if out, err := r.agentsite(t, "reset"); err != nil {
				t.Fatal(out, err)
			}
			until(t, 20*time.Second, "outputs move again, without a restart", func() bool { return strings.Contains(move("d", 60), switched) })
			shows("d", "on")
			if out, err := r.agentsite(t, "journal", "--verify"); err != nil {
				t.Error(out, err)
			}
		})
	}
}

// fill leaves no byte free.
func fill(t *testing.T, data string) func() {
	t.Helper()
	f, err := os.Create(filepath.Join(data, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{4096, 1} { // to the last byte
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		err = nil
	}
	return func() { os.Remove(f.Name()) }
}

// mountLoop mounts a disk that becomes read-only when something is wrong with it, as
// cards do.
func mountLoop(t *testing.T, data string) {
	t.Helper()
	image := filepath.Join(folder(t), "disk")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.ext4", "-q", image)
	run(t, "mount", "-o", "loop,errors=remount-ro", image, data)
}

func breakLoop(t *testing.T, data string) func() {
	t.Helper()
	disk := filepath.Base(run(t, "findmnt", "--noheadings", "--output", "SOURCE", "--target", data))
	if err := os.WriteFile(filepath.Join("/sys/fs/ext4", disk, "trigger_fs_error"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	return nil
}
