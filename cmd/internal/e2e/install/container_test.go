//go:build e2e && linux

package install

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

const (
	containerUID   = 60123 // of the user of rootless podman
	containerImage = "agentsite:9.0.0"
	containerPlant = `site: { name: plant }
devices:
  board:
    driver: modbus
    port: /dev/ttyUSB0
    baud: 19200
    unit_id: 2
    map: waveshare-relay-8
    every: 1s
    outputs: { pump: { use: relay4, safe: off } }
    points: { pump: { max_on: 1h, min_off: 0s } }
`
)

// podman runs containers as the superuser, or as a user of its own.
type podman struct {
	uid    uint32
	home   string
	groups []string // permit the serial port
}

func (p podman) try(args ...string) (string, error) {
	cmd := exec.Command("podman", append([]string{"--storage-driver=vfs", "--cgroup-manager=cgroupfs"}, args...)...)
	cmd.Dir = p.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "XDG_RUNTIME_DIR=" + p.home, "TMPDIR=" + p.home}
	if p.uid == 0 {
		storage := []string{"--root=" + p.home + "/root", "--runroot=" + p.home + "/run"}
		cmd.Args = append(cmd.Args[:1:1], append(storage, cmd.Args[1:]...)...)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.uid, Groups: []uint32{20}}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p podman) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.try(args...)
	if err != nil {
		t.Fatalf("podman %v: %v\n%s", args, err, out)
	}
	return out
}

// start starts a container without privileges. The limits are ones that a machine without CAP_SYS_RESOURCE permits.
func (p podman) start(t *testing.T, name string, options []string, args ...string) {
	t.Helper()
	all := []string{"run", "-d", "--name", name, "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges",
		"--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--tmpfs=/tmp", "-v", name + ":/var/lib/agentsite"}
	p.run(t, append(append(append(all, options...), containerImage), args...)...)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := p.try("logs", name)
			t.Logf("the log of %s:\n%s", name, out)
		}
		p.try("rm", "-f", "-t", "0", name)
	})
}

// process returns the ID, on this machine, of the last process whose arguments contain word.
func (p podman) process(t *testing.T, name, word string) (pid int) {
	t.Helper()
	for line := range strings.Lines(p.run(t, "top", name, "hpid", "args")) {
		if id, args, _ := strings.Cut(line, " "); strings.Contains(args, word) {
			pid, _ = strconv.Atoi(id)
		}
	}
	if pid == 0 {
		t.Fatalf("%s has no process %s", name, word)
	}
	return pid
}

// TestContainer: podman runs the image as the superuser and as a user, without any privilege. The demonstration is
// claimed at a published port, keeps its data, and ends in order. A serial port is passed in, and the guard outlives a
// killed site.
func TestContainer(t *testing.T) {
	if !harness.InMountNamespace(t, "--net") {
		return
	}
	for _, program := range []string{"podman", "slirp4netns", "newuidmap", "socat", "mbpoll"} {
		if _, err := exec.LookPath(program); err != nil {
			harness.Need(t, program, "")
		}
	}
	image := filepath.Join(harness.TempDir(t), "image.tar")
	os.Chmod(filepath.Dir(image), 0o755)
	programs := []string{"linux/" + runtime.GOARCH + "=" + harness.Need(t, "the program", harness.Program)}
	if runtime.GOARCH != "arm64" {
		programs = append(programs, "linux/arm64="+harness.Need(t, "the arm64 program", harness.ARM64Program))
	}
	cmd := exec.Command("go", append([]string{"run", ".", "image", image, "9.0.0", ""}, programs...)...)
	cmd.Dir = "../../../../deploy/publish"
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", time.Now().Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	prepareContainers(t)
	for name, p := range map[string]podman{
		"root":     {home: harness.TempDir(t), groups: []string{"--group-add=20"}},
		"rootless": {uid: containerUID, home: harness.TempDir(t), groups: []string{"--group-add=keep-groups"}},
	} {
		if err := os.Chown(p.home, int(p.uid), int(p.uid)); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { p.try("system", "migrate") }) // ends the process that keeps its namespaces
			if out := p.run(t, "load", "-i", image); !strings.Contains(out, "docker.io/library/"+containerImage) {
				t.Error(out)
			}
			t.Run("published", p.published)
			t.Run("device", p.device)
		})
	}
}

// prepareContainers makes of this mount namespace a machine on which podman works, and which has the user.
func prepareContainers(t *testing.T) {
	harness.MustRun(t, "ip", "link", "set", "lo", "up")
	// crun refuses both versions of control groups at once.
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		harness.MustRun(t, "umount", "/sys/fs/cgroup/unified")
	}
	harness.MustRun(t, "mount", "--make-rshared", "/")
	harness.MustRun(t, "mount", "-t", "tmpfs", "none", "/dev/net")
	harness.MustRun(t, "mknod", "-m", "666", "/dev/net/tun", "c", "10", "200")
	dir := harness.TempDir(t)
	os.Chmod(dir, 0o755)
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf(
			"sitetest:x:%d:%[1]d::/:/bin/sh\n", containerUID,
		), "group": fmt.Sprintf("sitetest:x:%d:\n", containerUID),
		"subuid": "sitetest:1000000:70000\n", "subgid": "sitetest:1000000:70000\n",
	} {
		text, _ := os.ReadFile("/etc/" + name) // without the file there are no others
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, append(text, line...), 0o644); err != nil {
			t.Fatal(err)
		}
		harness.MustRun(t, "mount", "--bind", file, "/etc/"+name)
	}
}

var claimAddress = regexp.MustCompile(`agentsite claim (agentsite://\S+/)[^/\s]+:8474`)

func (p podman) published(t *testing.T) {
	port := harness.FreePort(t)
	options := []string{"-p", "127.0.0.1:" + port + ":8474"}
	p.start(t, "demo", options, "run", "--data", "/var/lib/agentsite", "--listen-https", ":8474")
	var address string
	harness.WaitFor(t, time.Minute, "the log says how to claim the site", func() bool {
		out, _ := p.try("logs", "demo")
		if m := claimAddress.FindStringSubmatch(out); m != nil {
			address = m[1] + "127.0.0.1:" + port
		}
		return address != ""
	})
	person := harness.NewPerson(t)
	person.MustCLI(t, "claim", address, "--name", "demo")
	var out string
	t.Cleanup(func() { t.Log(out) })
	read := func() (ok bool) {
		var err error
		out, err = person.CLI(t, "read", "--site", "demo")
		return err == nil && strings.Contains(out, "greenhouse/temperature")
	}
	harness.WaitFor(t, time.Minute, "the owner reads", read)
	p.run(t, "kill", "-s", "KILL", "demo")
	p.run(t, "wait", "demo")
	p.run(t, "start", "demo")
	harness.WaitFor(t, time.Minute, "the owner reads after a restart", read)

	begun := time.Now()
	p.run(t, "stop", "-t", "30", "demo")
	if code := strings.TrimSpace(p.run(t, "inspect", "demo", "--format", "{{.State.ExitCode}}")); code != "0" {
		t.Error("the exit code is", code)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Error("it ends after", took)
	}
}

func (p podman) device(t *testing.T) {
	dir := harness.TempDir(t)
	os.Chmod(dir, 0o755)
	site, units, config := filepath.Join(dir, "site"), filepath.Join(dir, "units"), filepath.Join(dir, "agentsite.yaml")
	if err := os.WriteFile(config, []byte(containerPlant), 0o644); err != nil {
		t.Fatal(err)
	}
	background(t, exec.Command("socat", "PTY,raw,echo=0,group=20,perm=0660,link="+site, "PTY,raw,echo=0,link="+units))
	harness.WaitFor(t, time.Minute, "the serial line", func() bool {
		_, err := os.Stat(units)
		return err == nil
	})
	port := harness.FreePort(t)
	pymodbus := exec.Command("/usr/bin/python3", "../devices/testdata/modbus.py", port, units)
	out, err := pymodbus.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	background(t, pymodbus)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	isOn := func() bool {
		out := harness.MustRun(t, "mbpoll", "-m", "tcp", "-p", port, "-a", "2", "-t", "0", "-r", "4", "-1", "-q", "127.0.0.1")
		return strings.Contains(out, "\t1")
	}
	mounted := []string{"-v", config + ":/etc/agentsite/agentsite.yaml:ro"}

	p.start(t, "without", mounted)
	harness.WaitFor(t, time.Minute, "the site says that it has no port", func() bool {
		out, _ := p.try("exec", "without", "agentsite", "set", "board/pump", "on")
		return strings.Contains(out, "there is no /dev/ttyUSB0")
	})
	// A device node that the runtime makes anew is no pseudo-terminal: it is mounted. Of others --device is enough.
	tty, err := filepath.EvalSymlinks(site)
	if err != nil {
		t.Fatal(err)
	}
	p.start(t, "plant", append(append(mounted, "-v", tty+":/dev/ttyUSB0"), p.groups...))
	var said string
	harness.WaitFor(t, time.Minute, "the pump is on", func() bool {
		said, err = p.try("exec", "plant", "agentsite", "set", "board/pump", "on", "--for", "10m")
		return err == nil && isOn()
	})
	t.Log(said)
	// The site is the child of the first process.
	if err := syscall.Kill(p.process(t, "plant", "agentsite run"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, 10*time.Second, "the guard switches the pump off", func() bool { return !isOn() })
	if code := strings.TrimSpace(p.run(t, "wait", "plant")); code != "137" {
		t.Error("the exit code is", code)
	}
}

// background runs a program until the test ends.
func background(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}
