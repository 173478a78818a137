//go:build e2e && linux

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// fromRepository gets an upgrade by apt, of this source only.
const fromRepository = "apt-get -q -o APT::Update::Error-Mode=any update && DEBIAN_FRONTEND=noninteractive apt-get " +
	"-q upgrade -y"

// TestInstallLine is a board's life with a repository: the install line on an empty Debian, an upgrade by apt, an
// update from the channel, back and forward, and removed. What somebody else put or put back on the server changes
// nothing.
func TestInstallLine(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	harness.Need(t, "the packages", packages)
	now := time.Now()
	one, two, three := repository(t, 1, now.Add(-3*time.Hour)), repository(t, 2, now.Add(-2*time.Hour)),
		repository(t, 3, now.Add(-time.Hour))
	expired := repository(t, 3, now.AddDate(0, 0, -31))
	server := newReleaseSite(t, one)
	m := harness.Boot(t, 240*time.Second, filepath.Join(dir, "virt/disk"),
		"console=ttyAMA0 root=/dev/vda net.ifnames=0 systemd.show_status=0 systemd.mask=getty.target",
		"served="+server.Listener.Addr().String(), "-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-drive", "file="+filepath.Join(dir, "debian/root.img")+",if=virtio,format=raw,snapshot=on",
		"-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
	p := packaged{m}
	harness.WaitFor(t, 240*time.Second, "systemd has started", func() bool {
		_, out, _ := p.sh(t, "systemctl is-system-running --wait")
		return strings.TrimSpace(out) == "running" || strings.TrimSpace(out) == "degraded"
	})
	// No other source is reachable; apt needs awk, for which an unpacked mawk is not configured.
	p.does(t, "rm -f /etc/apt/sources.list; test -e /usr/bin/awk || ln -s mawk /usr/bin/awk")
	before := p.does(t, everything)

	runs := func(version string) {
		t.Helper()
		p.active(t)
		if got := p.does(t, "agentsite version"); !strings.Contains(got, version+" ") {
			t.Errorf("%s is here, want %s", got, version)
		}
	}
	// refused runs a command that must fail, after which the version still runs.
	refused := func(what, line, version string) {
		t.Helper()
		exit, out, errs := p.sh(t, line)
		t.Logf("%s: exit code %d\n%s", what, exit, lastLines(errs+out))
		if exit == 0 {
			t.Errorf("%s: accepted", what)
		}
		runs(version)
	}

	line := "curl -fsSL http://" + served + "/install.sh | sh"
	dry := p.does(t, line+" -s -- --dry-run")
	t.Log(dry)
	if strings.Contains(dry, "is installed") {
		t.Error("a dry run says that the program is installed")
	}
	if got := p.does(t, everything); got != before {
		t.Errorf("a dry run left\n%s", got)
	}
	server.serve(one, "/InRelease")
	if exit, out, errs := p.sh(t, line); exit == 0 {
		t.Errorf("installed from an index with a wrong signature: %s%s", out, errs)
	}
	if got := p.does(t, everything); got != before {
		t.Errorf("a refused installation left\n%s", got)
	}
	swapped := repository(t, 1, now.Add(-3*time.Hour))
	suites := filepath.Join(swapped, "apt/dists")
	if err := os.Rename(filepath.Join(suites, "stable"), filepath.Join(suites, "old")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(suites, "beta"), filepath.Join(suites, "stable")); err != nil {
		t.Fatal(err)
	}
	server.serve(swapped, "")
	if exit, out, errs := p.sh(t, line); exit == 0 {
		t.Errorf("installed from the index of another channel: %s%s", out, errs)
	}
	if got := p.does(t, everything); got != before {
		t.Errorf("a refused installation of another channel left\n%s", got)
	}
	server.serve(one, "")
	begun := time.Now()
	t.Log(p.does(t, line+" 2>&1"))
	runs("v1.0.0")
	t.Logf("%.0f s for the install line", time.Since(begun).Seconds())

	for _, file := range []string{"/InRelease", "/Packages.gz", ".deb"} {
		server.serve(two, file)
		if file == "/Packages.gz" { // apt asks by hash
			server.serve(two, hashOf(t, filepath.Join(two, "apt/dists/stable/main/binary-arm64/Packages.gz")))
		}
		refused("tampered "+file, fromRepository, "v1.0.0")
	}
	server.serve(expired, "")
	refused("an expired index", fromRepository, "v1.0.0")
	server.serve(two, "")
	t.Log(lastLines(p.does(t, fromRepository+" 2>&1")))
	runs("v1.0.1")
	server.serve(one, "")
	t.Log(lastLines(p.does(t, fromRepository+" 2>&1"))) // apt keeps the newer index
	if got := p.does(t, "apt-cache policy agentsite"); !strings.Contains(got, "Candidate: 1.0.1") {
		t.Errorf("after a replay of the index:\n%s", got)
	}
	runs("v1.0.1")

	const update = "agentsite update"
	server.serve(two, "")
	p.does(t, update) // nothing newer, and the board has seen this channel
	server.serve(three, "/channel/stable")
	refused("a tampered channel", update, "v1.0.1")
	server.serve(three, ".update")
	refused("a tampered update", update, "v1.0.1")
	server.serve(expired, "")
	refused("an expired channel", update, "v1.0.1")
	server.serve(one, "")
	refused("a replayed channel", update, "v1.0.1")
	server.serve(three, "")
	if exit, out, _ := p.sh(t, update+" --check"); exit != 10 || !strings.Contains(out, "v1.0.2") {
		t.Errorf("--check: %d %s", exit, out)
	}
	// The service's user keeps what it has seen in the inbox, which says nothing to the superuser.
	const service = "setpriv --reuid=agentsite --regid=agentsite --clear-groups "
	t.Log(p.does(t, service+update+" && test -f /var/lib/agentsite-update/inbox/next"))
	server.serve(two, "")
	refused("a channel replayed to the service's user", service+update, "v1.0.1")
	server.serve(three, "")
	p.does(t, `echo '{"form":1,"serials":{"stable":18446744073709551615}}' >/var/lib/agentsite-update/inbox/channel.json`)
	begun = time.Now()
	t.Log(p.does(t, update+" 2>&1"))
	runs("v1.0.2")
	t.Logf("%.0f s for agentsite update", time.Since(begun).Seconds())

	refused("back by the service's user", service+update+" --back", "v1.0.2")
	t.Log(p.does(t, update+" --back 2>&1"))
	runs("v1.0.1")
	t.Log(lastLines(p.does(t, "DEBIAN_FRONTEND=noninteractive apt-get -q update; apt-get -q install -y "+
		"--allow-downgrades agentsite=1.0.0 2>&1")))
	runs("v1.0.0")
	refused("a version below the floor", update+" --version v1.0.1", "v1.0.0")
	t.Log(p.does(t, update+" 2>&1"))
	runs("v1.0.2")

	t.Log(lastLines(p.does(t, line+" -s -- --uninstall 2>&1")))
	t.Logf("left:\n%s", p.does(t, everything))
	p.does(t, "test -e /var/lib/agentsite/token -a -e /etc/agentsite/agentsite.yaml -a ! -e "+
		"/usr/lib/agentsite -a ! -e /etc/apt/sources.list.d/agentsite.sources")
	t.Log(lastLines(p.does(t, line+" -s -- --purge 2>&1; apt-get clean; systemctl daemon-reload; systemctl reset-failed")))
	if after := p.does(t, everything); after != before {
		t.Errorf("it was\n%s\nand after a purge it is\n%s", before, after)
	}
}

// lastLines returns the end of a text.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-6):], "\n")
}
