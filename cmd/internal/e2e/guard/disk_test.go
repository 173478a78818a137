//go:build e2e

package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestDiskFails: a data folder that takes nothing more keeps no output from safe, and
// lets none leave it.
func TestDiskFails(t *testing.T) {
	if !harness.InMountNamespace(t) {
		return
	}
	for _, tt := range []struct {
		name   string
		mount  func(t *testing.T, data string)
		breaks func(t *testing.T, data string) (mend func())
		says   string
	}{
		{"full", func(t *testing.T, data string) {
			harness.MustRun(t, "mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", data)
		}, harness.FillDisk, "no space left on device"},
		{"read-only", mountLoop, breakLoop, "read-only file system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data, dir := harness.TempDir(t), harness.TempDir(t)
			t.Setenv("RUNTIME_DIRECTORY", dir)
			tt.mount(t, data)
			t.Cleanup(func() { harness.MustRun(t, "umount", "--lazy", data) })
			config := "site: { name: disk }\ndevices:\n"
			for _, name := range []string{"a", "b", "c", "d"} {
				config += fmt.Sprintf("  %s: { driver: sim, model: relay, min_off: 0s, outputs_file: %s/%[1]s }\n", name, dir)
			}
			r := harness.StartIn(t, data, config, nil, harness.Need(t, "the program", harness.Program))
			shows := func(name, value string) {
				t.Helper()
				harness.WaitFor(t, time.Minute, name+" is "+value, func() bool { v, _ := harness.ReadWitness(filepath.Join(dir, name)); return v == value })
			}
			move := func(name string, seconds float64) string {
				t.Helper()
				_, answer := r.Post(t, harness.ToolCall("switch_output", fmt.Sprintf(`{"output":"%s/relay","on":true,"for_seconds":%v}`, name, seconds)), "Mcp-Name", "switch_output")
				return answer
			}
			harness.WaitFor(t, time.Minute, "outputs move", func() bool { return strings.Contains(move("a", 60), harness.MovedField) })
			for name, seconds := range map[string]float64{"b": 60, "c": 6} {
				if answer := move(name, seconds); !strings.Contains(answer, harness.MovedField) {
					t.Fatal(answer)
				}
				shows(name, "on")
			}
			mend := tt.breaks(t, data)
			harness.WaitFor(t, time.Minute, "what is left of the last block is used up", func() bool {
				release(t, r) // so that the next is a move, and no renewal
				return !strings.Contains(move("a", 60), harness.MovedField)
			})
			for range 3 {
				if answer := move("d", 60); !strings.Contains(answer, `"agentsite/fault":"unavailable"`) || !strings.Contains(answer, "("+tt.says+")") {
					t.Errorf("a new move: %s", answer)
				}
				if answer := move("b", 60); !strings.Contains(answer, harness.MovedField) { // it is no new move
					t.Errorf("a renewal: %s", answer)
				}
			}
			shows("d", "off")
			if out, err := r.CLI(t, "doctor"); err == nil || !strings.Contains(out, "problem: "+data) {
				t.Errorf("the doctor: %v\n%s", err, out)
			}
			release(t, r)
			shows("a", "off")
			shows("c", "off") // its lease is over
			shows("b", "on")
			if _, answer := r.Post(t, harness.ToolCall("emergency_stop", `{}`), "Mcp-Name", "emergency_stop"); !strings.Contains(answer, `"emergency_stop":true`) {
				t.Errorf("the emergency stop: %s", answer)
			}
			shows("b", "off")
			if n := strings.Count(r.Log.String(), "journal cannot be written; "); n < 1 || n > 2 {
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
			if out, err := r.CLI(t, "reset"); err != nil {
				t.Fatal(out, err)
			}
			harness.WaitFor(t, time.Minute, "outputs move again, without a restart", func() bool { return strings.Contains(move("d", 60), harness.MovedField) })
			shows("d", "on")
			if out, err := r.CLI(t, "journal", "--verify"); err != nil {
				t.Error(out, err)
			}
		})
	}
}

// mountLoop mounts a disk that becomes read-only when something is wrong with it, as
// cards do.
func mountLoop(t *testing.T, data string) {
	t.Helper()
	image := filepath.Join(harness.TempDir(t), "disk")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(16 << 20); err != nil {
		t.Fatal(err)
	}
	harness.MustRun(t, "mkfs.ext4", "-q", image)
	harness.MustRun(t, "mount", "-o", "loop,errors=remount-ro", image, data)
}

func breakLoop(t *testing.T, data string) func() {
	t.Helper()
	disk := filepath.Base(harness.MustRun(t, "findmnt", "--noheadings", "--output", "SOURCE", "--target", data))
	if err := os.WriteFile(filepath.Join("/sys/fs/ext4", disk, "trigger_fs_error"), []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	return nil
}

// childOf is the process that another one has started.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return child
		}
	}
	t.Fatalf("process %d has no child", pid)
	return 0
}

// TestStartsOnABadDisk: a site with a disk that takes no writes starts, reads, stops, releases and
// resets. It refuses moves with the reason, and its guard is replaced like any other.
func TestStartsOnABadDisk(t *testing.T) {
	if !harness.InMountNamespace(t) {
		return
	}
	for _, tt := range []struct {
		name   string
		breaks func(t *testing.T, data string) (mend func())
		says   string
	}{
		{"full", harness.FillDisk, "no space left on device"},
		{"read-only", func(t *testing.T, data string) func() {
			harness.MustRun(t, "mount", "-o", "remount,ro", data)
			return func() { harness.MustRun(t, "mount", "-o", "remount,rw", data) }
		}, "read-only file system"},
	} {
		for _, ended := range []string{"in order", "killed"} {
			t.Run(tt.name+", "+ended, func(t *testing.T) {
				data, dir := harness.TempDir(t), harness.TempDir(t)
				t.Setenv("RUNTIME_DIRECTORY", dir)
				mountLoop(t, data)
				t.Cleanup(func() { harness.MustRun(t, "umount", "--lazy", data) })
				config := filepath.Join(dir, "agentsite.yaml")
				text := fmt.Sprintf("site: { name: disk }\ndevices:\n  air: { driver: sim, model: climate }\n  a: { driver: sim, model: relay, min_off: 0s, outputs_file: %s/a }\n", dir)
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				start := func() *harness.Site {
					return harness.StartIn(t, data, "", nil, harness.Need(t, "the program", harness.Program), "run", "--config", config, "--listen-https", "127.0.0.1:0")
				}
				move := func(r *harness.Site) string {
					_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"a/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
					return answer
				}
				end := func(r *harness.Site) {
					if ended == "killed" {
						r.Kill(t)
					} else {
						r.Stop(t)
					}
				}
				says := func(r *harness.Site, args ...string) string {
					t.Helper()
					out, err := r.CLI(t, args...)
					if err != nil {
						t.Errorf("%v: %v", args, err)
					}
					return out
				}
				r := start()
				harness.WaitFor(t, time.Minute, "outputs move", func() bool { return strings.Contains(move(r), harness.MovedField) })
				end(r)
				mend := tt.breaks(t, data)

				r = start()
				if out := says(r, "read", "air/temperature"); !strings.Contains(out, "°C") {
					t.Errorf("a reading: %q", out)
				}
				refused := func() {
					t.Helper()
					harness.WaitFor(t, time.Minute, "what is left of the last block is used up", func() bool {
						release(t, r)
						return !strings.Contains(move(r), harness.MovedField)
					})
					if answer := move(r); !strings.Contains(answer, `"agentsite/fault":"unavailable"`) || !strings.Contains(answer, tt.says) {
						t.Errorf("a move: %s", answer)
					}
				}
				refused()
				says(r, "reload") // of what says what it said before
				release(t, r)
				says(r, "stop")
				end(r)
				if out, err := r.CLI(t, "safe"); err != nil {
					t.Errorf("safe: %s %v", out, err)
				}
				r = start()
				if answer := move(r); !strings.Contains(answer, `"agentsite/fault":"unsafe"`) {
					t.Errorf("a move, when stopped: %s", answer)
				}
				says(r, "reset")
				refused()
				syscall.Kill(childOf(t, r.Cmd.Process.Pid), syscall.SIGKILL)
				harness.WaitFor(t, time.Minute, "the outputs are driven again", func() bool {
					_, answer := r.Post(t, harness.ToolCall("release_output", `{"output":"a/relay"}`), "Mcp-Name", "release_output")
					return strings.Contains(answer, `"value":false`)
				})
				if _, answer := r.Post(t, harness.ToolCall("emergency_stop", `{}`), "Mcp-Name", "emergency_stop"); !strings.Contains(answer, `"emergency_stop":true`) {
					t.Errorf("the emergency stop: %s", answer)
				}
				says(r, "reset")
				end(r)
				r = start()
				mend()
				harness.WaitFor(t, time.Minute, "outputs move, without a restart", func() bool { return strings.Contains(move(r), harness.MovedField) })
				says(r, "journal", "--verify")
			})
		}
	}
}

// TestTornJournal: a loss of power that leaves zeros in place of the end of the journal
// keeps no output from moving.
func TestTornJournal(t *testing.T) {
	config := "site: { name: torn }\ndevices:\n  a: { driver: sim, model: relay, min_off: 0s }\n"
	data := harness.TempDir(t)
	for _, zeros := range []int{1, 20, 200} {
		r := harness.StartIn(t, data, config, nil, harness.Need(t, "the program", harness.Program))
		moves := func() bool {
			_, answer := r.Post(t, harness.ToolCall("switch_output", `{"output":"a/relay","on":true,"for_seconds":60}`), "Mcp-Name", "switch_output")
			return strings.Contains(answer, harness.MovedField)
		}
		harness.WaitFor(t, time.Minute, "outputs move", moves)
		r.Kill(t)
		all, err := filepath.Glob(filepath.Join(data, "journal", "*.journal"))
		if err != nil || len(all) == 0 {
			t.Fatal("no journal", err)
		}
		segment := all[len(all)-1]
		b, err := os.ReadFile(segment)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[len(b)-zeros:])
		if err := os.WriteFile(segment, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r = harness.StartIn(t, data, config, nil, harness.Program)
		harness.WaitFor(t, time.Minute, "outputs move after the loss of power", moves)
		if out, err := r.CLI(t, "journal", "--verify"); err != nil {
			t.Error(out, err)
		}
		r.Kill(t)
	}
}

// release returns the relay a to safe, which needs no disk.
func release(t *testing.T, r *harness.Site) {
	t.Helper()
	if _, answer := r.Post(t, harness.ToolCall("release_output", `{"output":"a/relay"}`), "Mcp-Name", "release_output"); !strings.Contains(answer, `"value":false`) {
		t.Errorf("a release: %s", answer)
	}
}
