//go:build e2e

package home

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// onOwnMachine runs the calling test again where it has ports, mounts and a loopback of its own, so that what a recipe
// says can be run as it is written. It reports whether this is that run.
func onOwnMachine(t *testing.T) bool {
	t.Helper()
	if os.Getenv("E2E_ALONE") != "" {
		harness.MustRun(t, "ip", "link", "set", "lo", "up")
		return true
	}
	root := ""
	if os.Geteuid() == 0 {
		root = "root"
	}
	harness.Need(t, "the right to mount", root)
	self := exec.Command("unshare", "--mount", "--net", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	self.Env = append(os.Environ(), "E2E_ALONE=1")
	out, err := self.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return false
}

// block is one of a page: its kind is behind the backquotes.
type block struct{ kind, text string }

// recipe returns the blocks of a part of docs/recipes.md.
func recipe(t *testing.T, name string) (all []block) {
	t.Helper()
	page, err := os.ReadFile("../../../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "<!-- run: "+name+" -->\n")
	part, _, ok := strings.Cut(part, "<!-- end -->")
	if !ok {
		t.Fatalf("docs/recipes.md has no part %s", name)
	}
	var open *block
	indent := ""
	for line := range strings.Lines(part) {
		text := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(text, "```"):
			indent = line[:len(line)-len(text)]
			open = &block{kind: strings.TrimSpace(text[3:])}
		case open != nil && strings.HasPrefix(text, "```"):
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent)
		}
	}
	return all
}

// person follows a recipe, in a folder and with programs found by their names.
type person struct {
	*testing.T
	dir string
	env []string
}

// newPerson returns a person at a board that has what is installed here.
func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{T: t, dir: harness.TempDir(t)}
	bin := filepath.Join(p.dir, "bin")
	state, config := filepath.Join(p.dir, "state"), filepath.Join(p.dir, "config")
	p.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")+":/usr/sbin", "HOME="+p.dir, "XDG_STATE_HOME="+state,
		"XDG_CONFIG_HOME="+config)
	p.folder(bin)
	if err := os.Symlink(harness.Need(t, "the program", harness.Program), filepath.Join(bin, "agentsite")); err != nil {
		t.Fatal(err)
	}
	p.program("sudo", `exec env "$@"`)
	p.program("apt", "true")
	return p
}

// program adds a program to those of the person: lines of a shell.
func (p *person) program(name, lines string) {
	p.Helper()
	p.write(filepath.Join("bin", name), "#!/bin/sh\n"+lines+"\n", 0o755)
}

func (p *person) folder(name string) {
	p.Helper()
	if err := os.MkdirAll(name, 0o755); err != nil {
		p.Fatal(err)
	}
}

// mosquitto returns Debian's broker.
func mosquitto(t testing.TB) string {
	t.Helper()
	program, _ := exec.LookPath("/usr/sbin/mosquitto")
	return harness.Need(t, "mosquitto", program)
}

// mosquitto has "systemctl restart mosquitto" start Debian's broker, in fresh folders.
func (p *person) mosquitto() {
	p.Helper()
	program := mosquitto(p)
	conf, err := os.ReadFile("/etc/mosquitto/mosquitto.conf")
	if err != nil {
		p.Fatal(err)
	}
	for _, dir := range []string{"/etc/mosquitto", "/run/mosquitto", "/var/lib/mosquitto", "/var/log/mosquitto"} {
		p.folder(dir)
		harness.MustRun(p.T, "mount", "-t", "tmpfs", "none", dir)
		harness.MustRun(p.T, "chown", "mosquitto:", dir)
	}
	p.write("/etc/mosquitto/mosquitto.conf", string(conf), 0o644)
	p.folder("/etc/mosquitto/conf.d")
	p.program("systemctl", `[ "$*" = 'restart mosquitto' ] && exec `+program+" -d -c /etc/mosquitto/mosquitto.conf")
	p.Cleanup(func() {
		if pid, err := os.ReadFile("/run/mosquitto/mosquitto.pid"); err == nil {
			exec.Command("kill", strings.TrimSpace(string(pid))).Run()
		}
	})
}

// site starts the site in the person's folder, and makes the person its owner.
func (p *person) site(config string) {
	p.Helper()
	p.write("agentsite.yaml", config, 0o600)
	p.start(filepath.Join(p.dir, "bin/agentsite"), "run")
	harness.WaitFor(p, time.Minute, "the site answers", func() bool {
		res, err := http.Get("http://127.0.0.1:8473/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	p.do("agentsite clock --set && agentsite token add owner 'read *'") // the first who gives one is the owner
}

func (p *person) write(file, text string, mode os.FileMode) {
	p.Helper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(p.dir, file)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		p.Fatal(err)
	}
}

func (p *person) read(file string) string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// do runs lines of a shell, and returns what they print.
func (p *person) do(lines string) string {
	p.Helper()
	cmd := exec.Command("sh", "-eu", "-c", lines)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("%s%v\n%s", lines, err, out)
	}
	return string(out)
}

// start runs a program until the test ends, or end is called. It returns what the program says.
func (p *person) start(name string, args ...string) (log *harness.LogBuffer, end func()) {
	p.Helper()
	log = &harness.LogBuffer{}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a shell starts ends with it
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	var once sync.Once
	end = func() {
		once.Do(func() {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-ended:
			case <-time.After(15 * time.Second):
				syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				p.Errorf("%s did not end within 15 s", name)
			}
			if p.Failed() {
				p.Logf("%s:\n%s", name, log)
			}
		})
	}
	p.Cleanup(end)
	return log, end
}
