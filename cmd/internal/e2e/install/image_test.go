//go:build e2e && linux

package install

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/access"
)

const imageSlots = 2 // the first of two partitions

// TestImage tests the SD card from flashing on: first boot, claim, a good and a broken update, and
// the outputs of a killed site.
func TestImage(t *testing.T) {
	harness.Need(t, "the emulated board", harness.TestbedDir)
	for _, tool := range []string{"mformat", "mke2fs", "sfdisk", "cpio", "curl", "ar", "fdtput"} {
		path, _ := exec.LookPath(tool)
		harness.Need(t, tool, path)
	}
	f := flash(t)
	ann := harness.NewPerson(t)
	ann.Key(t)

	t.Log("== first boot")
	f.write(t, "agentsite.yaml", []byte(`site: { name: shed }
internet: { realm: home:k5qjb3xzyx3m2q7nq4vd5r6waa }
devices:
  board: { driver: host, every: 2s }
  lamp: { driver: relay, pin: GPIO17, safe: off, min_off: 0s }
`))
	p := f.powerOn(t, false)
	i := p.invitation(t)
	t.Logf("%.1f s to the address to claim it by", p.seconds())
	i.Addresses = []string{"127.0.0.1:" + f.port}
	harness.WaitFor(t, time.Minute, "the site answers over HTTPS", p.answers)
	t.Logf("%.1f s to the first answer", p.seconds())
	// The command gives up after half a minute, which an emulated board beside others may need.
	harness.WaitFor(t, 2*time.Minute, "the site is claimed", func() bool {
		_, err := ann.CLI(t, "claim", i.String())
		return err == nil
	})
	t.Logf("%.1f s to claimed", p.seconds())
	p.closed(t)
	if out := ann.MustCLI(t, "read", "--site", "shed"); !strings.Contains(out, "board/uptime") || !strings.Contains(out, "lamp/relay") {
		t.Errorf("it is not what the card's agentsite.yaml says:\n%s", out)
	}
	// What its owner adds over the network is there after all updates, until the file on the card changes.
	next := filepath.Join(f.dir, "next.yaml")
	text := ann.MustCLI(t, "config", "--site", "shed") + "  more: { driver: sim, model: climate }\n"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ann.MustCLI(t, "config", "replace", next, "--site", "shed")
	// The board is idle until then.
	second, third := f.update(t, 2, harness.ARM64Program), f.update(t, 3, "/bin/false")
	p.waitForConsole(t, "is confirmed")
	p.powerOff(t)

	t.Log("== an update on the card")
	f.write(t, "agentsite.update", second)
	p = f.powerOn(t, false)
	p.restarts(t)
	if !f.tryboot {
		t.Fatalf("the board does not try the update:\n%s", p.console)
	}

	t.Log("== the update on trial")
	f.write(t, "agentsite.update", third)
	p = f.powerOn(t, true)
	if p.slot != imageSlots+1 {
		t.Fatalf("slot %d is started", p.slot)
	}
	p.listeners(t)
	harness.WaitFor(t, time.Minute, "its screen shows the readings", func() bool {
		shows := p.guest(t).ReadFile(t, "/dev/vcs1")
		return strings.Contains(shows, "  shed  ") && strings.Contains(shows, "lamp/relay")
	})
	p.killed(t, ann)
	p.waitForConsole(t, "2 is confirmed")
	p.hangs(t, ann) // the next update waits for the site's end
	p.restarts(t)

	t.Log("== a broken update")
	p = f.powerOn(t, false)
	if p.slot != imageSlots {
		t.Fatalf("slot %d is started", p.slot)
	}
	p.waitForConsole(t, "3 is on trial")
	p.restarts(t)

	t.Log("== back again")
	p = f.powerOn(t, false)
	if p.slot != imageSlots+1 || p.tryboot {
		t.Fatalf("slot %d is started", p.slot)
	}
	p.waitForConsole(t, "3 failed its trial; 2 is back")
	harness.WaitFor(t, time.Minute, "its owner reaches it", func() bool {
		out, err := ann.CLI(t, "read", "--site", "shed", "board/uptime")
		return err == nil && strings.Contains(out, "board/uptime")
	})
	t.Logf("%.1f s to a reading", p.seconds())
	ann.MustCLI(t, "read", "--site", "shed", "more/temperature")
}

// guest returns the program that the test adds to the image.
func (p *powered) guest(t testing.TB) *harness.Machine {
	t.Helper()
	m := &harness.Machine{Control: "http://127.0.0.1:" + p.control}
	harness.WaitFor(t, time.Minute, "the guest answers", func() bool {
		_, err := m.AskWithin(time.Second, "GET", "/file", nil, "path", "/proc/version")
		return err == nil
	})
	return m
}

// listeners shows that nobody listens on the board but the site.
func (p *powered) listeners(t *testing.T) {
	m := p.guest(t)
	harness.WaitFor(t, time.Minute, "the site answers", p.answers)
	site := map[string]bool{"8473": true, "8474": true, "8475": true, "5353": true} // HTTP on the loopback, HTTPS, peers, mDNS
	riding := map[string]bool{"9": true, p.control: true}
	for _, file := range []string{"tcp", "tcp6", "udp", "udp6"} {
		peers := false
		for line := range strings.Lines(m.ReadFile(t, "/proc/net/"+file)) {
			f := strings.Fields(line)
			if listens := strings.HasPrefix(file, "udp") || f[3] == "0A"; !listens || f[0] == "sl" {
				continue
			}
			host, hex, _ := strings.Cut(f[1], ":")
			n, err := strconv.ParseUint(hex, 16, 16)
			port := strconv.FormatUint(n, 10)
			peers = peers || port == "8475"
			if err != nil || !site[port] && !riding[port] || port == "8473" && host != "0100007F" {
				t.Errorf("somebody listens at %s %s:%s", file, host, port)
			}
		}
		if !peers && !strings.HasSuffix(file, "6") {
			t.Errorf("nobody listens for peers over %s", file)
		}
	}
}

// closed knocks where other systems listen, from outside.
func (p *powered) closed(t *testing.T) {
	for port, at := range p.knock {
		conn, err := net.Dial("tcp", "127.0.0.1:"+at) // which QEMU accepts
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
			t.Errorf("somebody listens at port %d", port)
		}
		conn.Close()
	}
}

// killed kills the site and all that it started, at once, while an output is on.
func (p *powered) killed(t *testing.T, owner harness.Person) {
	p.lit(t, owner)
	p.guest(t).WriteFile(t, siteGroup+"cgroup.kill", "1")
	begun := time.Now()
	p.dark(t)
	t.Logf("%.1f s to safe", time.Since(begun).Seconds())
	p.waitForConsole(t, "safe values (1)")
	p.waitForConsole(t, "has exited: killed")
	harness.WaitFor(t, 2*time.Minute, "the site is back", func() bool {
		out, err := owner.CLI(t, "read", "--site", "shed", "lamp/relay")
		return err == nil && strings.Contains(out, "off")
	})
	t.Logf("%.1f s to back", time.Since(begun).Seconds())
}

// hangs: a process that does not respond is ended, and the outputs that it left on are off, even if
// the hanging process drives them.
func (p *powered) hangs(t *testing.T, owner harness.Person) {
	p.lit(t, owner)
	p.guest(t).WriteFile(t, siteGroup+"cgroup.freeze", "1")
	begun := time.Now()
	p.dark(t)
	t.Logf("%.1f s to safe", time.Since(begun).Seconds())
	p.waitForConsole(t, "has exited: no WATCHDOG=1")
}

// siteGroup is of all of the site's processes.
const siteGroup = "/sys/fs/cgroup/agentsite/"

// lit has an output on.
func (p *powered) lit(t *testing.T, owner harness.Person) {
	harness.WaitFor(t, time.Minute, "the lamp is on", func() bool {
		_, err := owner.CLI(t, "set", "lamp/relay", "on", "--for", "2m", "--site", "shed")
		return err == nil && strings.Contains(p.guest(t).GPIO17(t), "out hi")
	})
}

// dark waits until it is off.
func (p *powered) dark(t *testing.T) {
	harness.WaitFor(t, time.Minute, "the lamp is off", func() bool {
		return !strings.Contains(p.guest(t).ReadFile(t, "/sys/kernel/debug/gpio"), "out hi")
	})
}

// waitForConsole waits for a text on the board's console.
func (p *powered) waitForConsole(t testing.TB, text string) {
	t.Helper()
	harness.WaitFor(t, 5*time.Minute, "the console shows: "+text, func() bool { return strings.Contains(p.console.String(), text) })
}

var restarting = regexp.MustCompile(`reboot: Restarting system|Rebooting in \d+ seconds`)

// restarts waits until the board restarts itself, and switches it off.
func (p *powered) restarts(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, 5*time.Minute, "the board restarts", func() bool { return restarting.MatchString(p.console.String()) })
	t.Logf("%.1f s to its restart", p.seconds())
	p.powerOff(t)
	// The firmware is told by a property that QEMU does not know.
	p.tryboot = strings.Contains(p.console.String(), "unhandled tag 0x00038064")
}

var claimWith = regexp.MustCompile(`agentsite claim (\S+)`)

// invitation waits for the address to claim the site by, on the console.
func (p *powered) invitation(t testing.TB) (i access.Invitation) {
	t.Helper()
	harness.WaitFor(t, 5*time.Minute, "the board shows how to claim it", func() bool {
		var err error
		found := claimWith.FindStringSubmatch(p.console.String())
		if found == nil {
			return false
		}
		i, err = access.ParseInvitation(found[1])
		return err == nil
	})
	return i
}

// answers reports whether somebody says something over HTTPS where the site does.
func (p *powered) answers() bool {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", "127.0.0.1:"+p.port, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
