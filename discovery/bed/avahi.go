package bed

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Avahi is a host on which Debian's avahi runs, and a shell there: a peer that nobody
// here wrote.
type Avahi struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Scanner
}

// Avahi starts it on a host, by that host name. Without the Debian packages the test is
// skipped, as New does.
func (b *Bed) Avahi(host, hostname string) *Avahi {
	b.t.Helper()
	for _, program := range []string{"avahi-daemon", "avahi-browse", "dbus-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(b.t, "the Debian packages avahi-daemon, avahi-utils and dbus are needed to see that others understand us: %v", err)
		}
	}
	// Its files under /run are its own, and all ends with the shell.
	argv := On(host, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "bash")
	cmd := exec.Command(argv[0], argv[1:]...)
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
	a := &Avahi{b.t, in, bufio.NewScanner(out)}
	a.Run(`mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/dbus /run/avahi-daemon && hostname ` + hostname)
	a.Run(`dbus-daemon --system --fork --nopidfile && avahi-daemon --no-drop-root --no-rlimits --no-chroot -D`)
	a.Until(hostname, "avahi-resolve -n "+hostname+".local")
	return a
}

// Run runs a command for at most 10 s, and returns its output.
func (a *Avahi) Run(command string) string {
	a.t.Helper()
	fmt.Fprintf(a.in, "timeout 10 bash -c %q </dev/null 2>&1; echo; echo the-end\n", command)
	return a.answer(command)
}

// Begin runs a command on and on, and returns its process's number, for "kill" in Run.
func (a *Avahi) Begin(command string) string {
	a.t.Helper()
	fmt.Fprintf(a.in, "%s >/dev/null 2>&1 </dev/null & echo $!; echo the-end\n", command)
	return a.answer(command)
}

func (a *Avahi) answer(command string) string {
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

// Until repeats a command ten times a second, for half a minute, until it says something.
func (a *Avahi) Until(want, command string) string {
	a.t.Helper()
	said := ""
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-every.C {
		if said = a.Run(command); strings.Contains(said, want) {
			return said
		}
	}
	a.t.Fatalf("%s: no %q in %q", command, want, said)
	return ""
}
