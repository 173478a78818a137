//go:build e2e && linux

package mdns

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/discovery"
	"agentsite/node/identity"
)

// avahi is a host on which Debian's avahi runs, and a shell there.
type avahi struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func (b *bed) avahi(ns, hostname string) *avahi {
	b.t.Helper()
	for _, program := range []string{"avahi-daemon", "avahi-browse", "dbus-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			b.t.Skipf("SKIPPED: %v: the Debian packages avahi-daemon, avahi-utils and dbus are needed to see that others understand us", err)
		}
	}
	// Its files under /run are its own, and all ends with the shell.
	cmd := exec.Command("ip", "netns", "exec", ns, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	a := &avahi{b.t, in, bufio.NewScanner(out)}
	a.run(`mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/dbus /run/avahi-daemon && hostname ` + hostname)
	a.run(`dbus-daemon --system --fork --nopidfile && avahi-daemon --no-drop-root --no-rlimits --no-chroot -D`)
	a.until(hostname, "avahi-resolve -n "+hostname+".local")
	return a
}

// run runs a command, and returns what it says.
func (a *avahi) run(command string) string {
	a.t.Helper()
	fmt.Fprintf(a.in, "timeout 10 bash -c %q </dev/null 2>&1; echo; echo the-end\n", command)
	return a.answer(command)
}

func (a *avahi) answer(command string) string {
	a.t.Helper()
	var all []string
	for a.out.Scan() {
		if a.out.Text() == "the-end" {
			return strings.TrimSpace(strings.Join(all, "\n"))
		}
		all = append(all, a.out.Text())
	}
	a.t.Fatalf("%s: the shell ended after %q", command, all)
	return ""
}

// until repeats a command until it says something.
func (a *avahi) until(want, command string) string {
	a.t.Helper()
	said := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if said = a.run(command); strings.Contains(said, want) {
			return said
		}
	}
	a.t.Fatalf("%s: no %q in %q", command, want, said)
	return ""
}

// TestAvahi: a program that nobody here wrote understands us, and we it.
func TestAvahi(t *testing.T) {
	b := newBed(t)
	a := b.avahi(b.host("10.77.0.50/24"), "taken")
	key := identity.New()
	greenhouse, taken := b.host("10.77.0.1/24 fd77::1/64"), b.host("10.77.0.2/24")
	site := b.announce(greenhouse, "greenhouse", string(key.PEM()))

	line := a.until(site.label, "avahi-browse -r -p -t _agentsite._tcp | grep ^=")
	for _, want := range []string{site.label + ".local", ";8473;", `"path=/mcp"`, `"id=` + key.ID().PeerID() + `"`, `"name=greenhouse"`, `"r0=`} {
		if !strings.Contains(line, want) {
			t.Errorf("avahi-browse has no %s: %s", want, line)
		}
	}
	for _, name := range []string{site.label, "greenhouse"} {
		a.until("10.77.0.1", "avahi-resolve -4 -n "+name+".local")
		a.until("fd77::1", "avahi-resolve -6 -n "+name+".local")
	}

	// A name that somebody has stays theirs.
	other := b.announce(taken, "taken")
	a.until("10.77.0.2", "avahi-resolve -4 -n "+other.label+".local")
	time.Sleep(2 * time.Second) // its probes are over
	if got := a.until("taken.local", "avahi-resolve -4 -n taken.local"); !strings.Contains(got, "10.77.0.50") {
		t.Errorf("taken.local: %s", got)
	}
	find := b.start(b.host("10.77.0.100/24"), "find")
	find.all(2, 5*time.Second)
	find.end()
	got := <-b.start(b.host("10.77.0.101/24"), "ask", "10.77.0.101:0", "10.77.0.2:5353", "taken.local.", "A").lines
	if got != "0 []" {
		t.Errorf("the site answers for a name that another has: %s", got)
	}

	site.end()
	a.until("gone", "avahi-browse -p -t _agentsite._tcp | grep -q "+site.label+" || echo gone")
	a.until("Failed", "avahi-resolve -4 -n greenhouse.local")
}

// TestAvahiAnnounces: what avahi announces for a site is found, and missed.
func TestAvahiAnnounces(t *testing.T) {
	b := newBed(t)
	a := b.avahi(b.host("10.77.0.50/24"), "debian")
	record := newRecord(identity.New(), "greenhouse")
	_, text, err := describe(record)
	if err != nil {
		t.Fatal(err)
	}
	label := discovery.Label(record.Site)
	publish := fmt.Sprintf("avahi-publish -s %s _agentsite._tcp 8473 %s", label, strings.Join(text, " "))
	find := b.start(b.host("10.77.0.100/24"), "find")
	fmt.Fprintf(a.in, "%s >/dev/null 2>&1 & echo $!; echo the-end\n", publish)
	pid := a.answer(publish)
	e, took := find.await(5*time.Second, "what avahi announces", appeared(label))
	if !slices.Contains(e.At, netip.MustParseAddr("10.77.0.50")) {
		t.Errorf("it is at %v", e.At)
	}
	a.run("kill " + pid)
	_, missed := find.await(5*time.Second, "it goes", gone(label))
	t.Logf("found after %v, and gone after %v", took.Round(time.Millisecond), missed.Round(time.Millisecond))
}
