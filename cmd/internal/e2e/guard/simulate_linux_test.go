//go:build e2e && linux

package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestSimulate runs an example as simulate does: a reading moves an output by its rule, a stop holds, the output
// process is replaced, and the end removes the folder. No system call of it opens a device file or leaves the
// machine.
func TestSimulate(t *testing.T) {
	strace, _ := exec.LookPath("strace")
	harness.Need(t, "strace", strace)
	example, err := filepath.Abs("../../../../docs/examples/printer-enclosure/agentsite.yaml")
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(harness.TempDir(t), "trace")
	var out harness.LogBuffer
	// With -D, the process that is started is the simulation, and strace is its descendant.
	cmd := exec.Command(strace, "-D", "-f", "-s", "4096", "-e",
		"trace=open,openat,openat2,socket,bind,connect,sendto,sendmsg,sendmmsg",
		"-o", trace, harness.Need(t, "the program", harness.Program), "simulate", example)
	cmd.Dir, cmd.Stdout, cmd.Stderr = harness.TempDir(t), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	printed := func(form string) {
		t.Helper()
		harness.WaitFor(
			t, time.Minute, form, func() bool { return regexp.MustCompile("(?m)" + form).MatchString(out.String()) },
		)
	}
	printed(`sim list --data \S+`)
	site := &harness.Site{Folder: regexp.MustCompile(`sim list --data (\S+)`).FindStringSubmatch(out.String())[1]}
	run := func(args ...string) {
		t.Helper()
		if text, err := site.CLI(t, args...); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, text)
		}
	}
	light := func(is string) {
		t.Helper()
		harness.WaitFor(t, time.Minute, "light/mosfet "+is, func() bool {
			text, err := site.CLI(t, "why", "light/mosfet")
			return err == nil && regexp.MustCompile(is).MatchString(text)
		})
	}

	// The door of a contact that reads off is open, and the rule switches the light.
	printed(`light/mosfet +on +\(rule:look\)`)
	light(`(?s)^light/mosfet is on.*rule:look`)
	run("sim", "set", "door/closed", "on")
	printed(`light/mosfet +off`)
	light(`^light/mosfet is off`)

	run("stop")
	run("sim", "set", "door/closed", "off")
	light(`(?s)^light/mosfet is off.*emergency stop`)
	run("reset")
	light(`^light/mosfet is on`)

	before := site.Guard(t)
	off := func() int { return len(regexp.MustCompile(`(?m)light/mosfet +off`).FindAllString(out.String(), -1)) }
	times := off()
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// It is off for its rest only, which a command that asks for it may miss.
	harness.WaitFor(t, time.Minute, "light/mosfet goes off", func() bool { return off() > times })
	if site.Guard(t) == before {
		t.Error("the same output process runs")
	}
	light(`^light/mosfet is on`) // when it has rested

	cmd.Process.Signal(os.Interrupt)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
	case <-time.After(time.Minute):
		t.Fatalf("it does not end\n%s", out.String())
	}
	if _, err := os.Stat(site.Folder); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	checkConfined(t, trace)
}

// checkConfined finds the system calls of a trace that open a device file, or use an address beyond this machine.
func checkConfined(t *testing.T, trace string) {
	t.Helper()
	var text string
	harness.WaitFor(t, time.Minute, "the end of the trace", func() bool {
		b, err := os.ReadFile(trace)
		text = string(b)
		first, _, _ := strings.Cut(text, " ")
		return err == nil && strings.Contains(text, "\n"+first+" +++ exited")
	})
	if !strings.Contains(text, "outputs.yaml") || !strings.Contains(text, `inet_addr("127.0.0.1")`) {
		t.Fatal("neither its files nor its listener are in the trace: this shows nothing")
	}
	isHarmless := regexp.MustCompile(`"/dev/(null|tty|urandom)"`).MatchString
	isLocal := regexp.MustCompile(`inet_addr\("127\.|"::1"|"::ffff:127\.`).MatchString
	isKnown := regexp.MustCompile(`socket\(AF_(UNIX|INET|INET6), SOCK_(STREAM|DGRAM)`).MatchString
	for line := range strings.Lines(text) {
		switch {
		case strings.Contains(line, `"/dev/`) && !isHarmless(line),
			strings.Contains(line, "sa_family=AF_INET") && !isLocal(line),
			strings.Contains(line, " socket(") && !isKnown(line):
			t.Error(line)
		}
	}
}
