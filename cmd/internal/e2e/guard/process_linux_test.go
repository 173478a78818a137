//go:build e2e && linux

package guard

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// descriptors returns the open files of a process, without those of its Go runtime.
func descriptors(t *testing.T, pid int) (all []string) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(folder, fd.Name()))
		if err == nil && !slices.Contains([]string{"anon_inode:[eventpoll]", "anon_inode:[eventfd]"}, to) && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			all = append(all, fd.Name()+" "+to)
		}
	}
	return all
}

// networkSockets are those of a process's network, whoever has them.
func networkSockets(t *testing.T, pid int) (all []string) {
	t.Helper()
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6", "packet", "netlink"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // of a kernel without it
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
			f := strings.Fields(line)
			inode := 9
			if table == "netlink" || table == "packet" {
				inode = len(f) - 1
			}
			all = append(all, "socket:["+f[inode]+"]")
		}
	}
	return all
}

// TestGuardProcess: while the site is called, the guard has little memory, no network, and only its
// own files open. Open files that the site was started with, such as a shell's, are not inherited.
func TestGuardProcess(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	file, err := os.Create(filepath.Join(harness.TempDir(t), "inherited"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	config, witness := harness.RelayConfig(t, "house: { driver: sim, model: greenhouse }")
	r := &harness.RelaySite{Site: harness.StartIn(t, harness.TempDir(t), config, []*os.File{socket, file}, harness.Need(t, "the program", harness.Program)), Witness: witness}
	if mine := descriptors(t, r.Cmd.Process.Pid); !slices.ContainsFunc(mine, func(d string) bool { return strings.HasSuffix(d, "/inherited") }) {
		t.Fatalf("the site was not started with what it should not pass on: %q", mine)
	}
	for range 100 {
		r.SwitchOn(t)
		r.Post(t, harness.ToolCall("read_points", `{}`))
		r.Post(t, harness.ToolCall("set_level", `{"output":"house/vent","value":50}`), "Mcp-Name", "set_level")
	}
	guard := r.Guard(t)

	status := fmt.Sprintf("/proc/%d/status", guard)
	anonymous, resident := harness.StatusFile(t, status, "RssAnon:"), harness.StatusFile(t, status, "VmRSS:")
	t.Logf("the guard has %.2f MB of anonymous memory, %.2f MB resident", anonymous/1024, resident/1024)
	if anonymous > 6*1024 { // with less, the guard collects garbage all the time: guardMemory
		t.Errorf("the guard has %v kB of anonymous memory, more than 6 MB", anonymous)
	}

	// A closed list: the runtime's epoll, eventfd and view of its cgroup are left out.
	has, network := descriptors(t, guard), networkSockets(t, guard)
	theirs := descriptors(t, r.Cmd.Process.Pid)
	if !slices.ContainsFunc(theirs, func(d string) bool { return slices.Contains(network, strings.Fields(d)[1]) }) {
		t.Fatal("the site has no network sockets: this shows nothing")
	}
	for _, d := range has {
		if slices.Contains(network, strings.Fields(d)[1]) {
			t.Errorf("the guard has a network socket: %s", d)
		}
	}
	// Its ends of the connection come as 0 and 1, and are once more in Go's hands.
	in, out := strings.TrimPrefix(has[0], "0 "), strings.TrimPrefix(has[1], "1 ")
	want := []string{"0 pipe:.*", "1 pipe:.*", "2 pipe:.*", `\d+ ` + regexp.QuoteMeta(in), `\d+ ` + regexp.QuoteMeta(out), `\d+ ` + regexp.QuoteMeta(filepath.Join(r.Folder, "guard.lock"))}
	for _, w := range want {
		i := slices.IndexFunc(has, regexp.MustCompile("^"+w+"$").MatchString)
		if i < 0 {
			t.Errorf("the guard does not have %s", w)
			continue
		}
		has = slices.Delete(has, i, i+1)
	}
	if len(has) > 0 {
		t.Errorf("the guard has these open too: %q", has)
	}
}

// TestCameraChild: a child of the site that outlives it does not keep the outputs on.
func TestCameraChild(t *testing.T) {
	dir := harness.TempDir(t)
	running := filepath.Join(dir, "running")
	script := "#!/bin/sh\necho $$ >" + running + ".new\nmv " + running + ".new " + running + "\nexec sleep 60\n"
	if err := os.WriteFile(filepath.Join(dir, "rpicam-still"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	harness.CheckDeadline(t, 100*time.Millisecond, func() time.Duration {
		os.Remove(running)
		r := harness.StartRelay(t, "eye: { driver: camera, width: 640, height: 480 }")
		r.SwitchOn(t)
		asking := exec.Command(harness.Program, "call", "capture_image", `{"camera":"eye/picture"}`, "--data", r.Folder)
		asking.Stderr = io.Discard
		if err := asking.Start(); err != nil {
			t.Fatal(err)
		}
		defer asking.Wait()
		harness.WaitFor(t, time.Minute, "a picture is being taken", func() bool { _, err := os.Stat(running); return err == nil })
		text, err := os.ReadFile(running)
		if err != nil {
			t.Fatal(err)
		}
		var child int
		fmt.Sscan(string(text), &child)
		defer syscall.Kill(child, syscall.SIGKILL)
		r.Kill(t)
		took := r.WaitForOff()
		if err := syscall.Kill(child, 0); err != nil {
			t.Errorf("the child has ended: this shows nothing: %v", err)
		}
		return took
	})
}
