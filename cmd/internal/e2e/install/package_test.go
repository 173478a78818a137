//go:build e2e && linux

// Package install tests packages, the SD-card image, updates and the service manager.
package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/node/update"
)

// packages is the output of the script: folders 1, 2 and 3 with packages of v1.0.0, v1.0.1 and
// v1.0.2, and the key that signs their updates.
var packages = os.Getenv("PACKAGES")

// packaged is a Debian on an emulated board with the package in it.
type packaged struct{ *harness.Machine }

// only returns the single file that matches a pattern among a version's.
func only(t testing.TB, version int, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(packages, fmt.Sprint(version), pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s of %d: %v %v", pattern, version, files, err)
	}
	return files[0]
}

// does runs a command line that must not fail, and returns what it printed.
func (p packaged) does(t testing.TB, line string) string {
	t.Helper()
	exit, out, errs := p.sh(t, line)
	if exit != 0 {
		t.Fatalf("%s: %d\n%s%s", line, exit, out, errs)
	}
	return strings.TrimSpace(out)
}

// sh runs a command line.
func (p packaged) sh(t testing.TB, line string) (exit int, stdout, stderr string) {
	t.Helper()
	return p.Machine.Run(t, "/bin/sh", "-c", "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root; "+line)
}

// give puts a file of this machine's there.
func (p packaged) give(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	p.WriteFile(t, to, string(b))
}

func (p packaged) install(t testing.TB, version int) {
	t.Helper()
	p.give(t, only(t, version, "*_arm64.deb"), "/root/agentsite.deb")
	begun := time.Now()
	t.Logf("%s", p.does(t, "dpkg -i /root/agentsite.deb 2>&1"))
	t.Logf("%.1f s for dpkg", time.Since(begun).Seconds())
}

// active waits until the service is ready.
func (p packaged) active(t testing.TB) {
	t.Helper()
	begun := time.Now()
	p.within(t, 100, "systemctl -q is-active agentsite")
	t.Logf("%.1f s until the service is ready", time.Since(begun).Seconds())
}

// reached waits until the site answers through the forwarded port.
func (p packaged) reached(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, 60*time.Second, "the site answers", func() bool {
		_, err := p.Client(t, false).Ask(t.Context(), "list_points", []byte(`{}`))
		return err == nil
	})
}

// on switches the relay on.
func (p packaged) on(t testing.TB) {
	t.Helper()
	p.UseTool(t, "switch_output", `{"output":"relay/relay","on":true,"for_seconds":300}`)
	if !p.Level(t, relayLine) {
		t.Fatal("the relay is not on")
	}
}

const relayLine = 17

// built: the program knows when it was made, before which its site's clock is never.
func (p packaged) built(t *testing.T) {
	var v struct{ Built time.Time }
	if err := json.Unmarshal([]byte(p.does(t, "agentsite version --json")), &v); err != nil || v.Built.Year() < 2026 || v.Built.After(time.Now()) {
		t.Errorf("it was built at %v: %v", v.Built, err)
	}
}

// TestPackage is a board's life with the package: installed, killed, stopped, updated,
// upgraded, removed.
func TestPackage(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	harness.Need(t, "the packages", packages)
	args := []string{"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-drive", "file=" + filepath.Join(dir, "debian/root.img") + ",if=virtio,format=raw,snapshot=on",
		"-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile="}
	if childDisk != "" {
		args = append(args, "-drive", "file="+childDisk+",if=virtio,format=raw,readonly=on")
	}
	m := harness.Boot(t, 120*time.Second, filepath.Join(dir, "virt/disk"), "console=ttyAMA0 root=/dev/vda net.ifnames=0 systemd.show_status=0 systemd.mask=getty.target", args...)
	p := packaged{m}
	harness.WaitFor(t, 120*time.Second, "systemd has started", func() bool {
		_, out, _ := p.sh(t, "systemctl is-system-running --wait")
		return strings.TrimSpace(out) == "running" || strings.TrimSpace(out) == "degraded"
	})
	t.Logf("%s", p.does(t, "systemctl --no-pager --failed; systemctl --version | head -1"))
	before := p.does(t, everything)

	t.Run("first reading", p.firstReading)
	t.Run("built", p.built)
	t.Run("the card", p.card)
	port := m.URL[strings.LastIndex(m.URL, ":")+1:]
	p.WriteFile(t, "/etc/agentsite/agentsite.yaml", "site: { name: shed }\nhttp: { listen: 127.0.0.1:"+port+" }\ninternet: { realm: home:k5qjb3xzyx3m2q7nq4vd5r6waa }\ndevices:\n"+
		"  board: { driver: host, every: 1s }\n  relay: { driver: relay, pin: GPIO17, safe: off, min_off: 0s }\n")
	p.does(t, "systemctl restart agentsite")
	token := p.ReadFile(t, "/var/lib/agentsite/token")
	m.Token = strings.TrimSpace(token)
	if err := os.WriteFile(filepath.Join(m.Folder, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	p.reached(t)
	who := p.identity(t)

	t.Run("runs as nobody special", p.confined)
	t.Run("killed", p.killed)
	t.Run("stopped", p.stopped)
	t.Run("configured", p.configured)
	t.Run("updated", p.updated)
	t.Run("upgraded", func(t *testing.T) {
		p.on(t)
		p.install(t, 3)
		p.WaitForLine(t, relayLine, false)
		p.active(t)
		p.reached(t)
		if got := p.does(t, "agentsite version"); !strings.Contains(got, "v1.0.2") {
			t.Error(got)
		}
		if p.ReadFile(t, "/var/lib/agentsite/token") != token {
			t.Error("its callers' token is another one")
		}
		p.does(t, "agentsite points --data /var/lib/agentsite | grep -q valve/relay") // which configured added
	})
	t.Run("children", p.children)
	if got := p.identity(t); got != who {
		t.Errorf("it was %s, and is %s", who, got)
	}

	t.Run("removed", func(t *testing.T) {
		p.on(t)
		p.does(t, "dpkg -r agentsite 2>&1")
		p.WaitForLine(t, relayLine, false)
		if got := p.ReadFile(t, "/var/lib/agentsite/token"); got != token {
			t.Error("removing the package took the data")
		}
		p.does(t, "dpkg --purge agentsite 2>&1; systemctl daemon-reload; systemctl reset-failed")
		if after := p.does(t, everything); after != before {
			t.Errorf("it was\n%s\nand after a purge it is\n%s", before, after)
		}
	})
}

// firstReading is a board's owner, from the package on: a BME280 is wired, and nobody
// configures anything. The emulated board is no Raspberry Pi, so its units are told where
// the boot partition is.
func (p packaged) firstReading(t *testing.T) {
	p.SetPlugged(t, true)
	p.SetInput(t, "bme280", "temperature", 17.25)
	p.does(t, "mkdir -p /boot/firmware && echo dtparam=i2c_arm=on >/boot/firmware/config.txt")
	for unit, command := range map[string]string{"agentsite-claim": "prepare --claim", "agentsite-prepare": "prepare --config /etc/agentsite/agentsite.yaml"} {
		dir := "/run/systemd/system/" + unit + ".service.d"
		p.does(t, "mkdir -p "+dir+" && printf '[Service]\nExecStart=\nExecStart=/usr/bin/agentsite "+command+" --data /var/lib/agentsite --boot /boot/firmware\n' >"+dir+"/test.conf")
	}
	p.does(t, "systemctl daemon-reload")
	p.give(t, only(t, 1, "*_arm64.deb"), "/root/agentsite.deb")
	script, err := os.ReadFile("testdata/first-reading.sh")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	said := p.does(t, string(script))
	t.Logf("%.1f s from the package to the first reading\n%s", time.Since(begun).Seconds(), said)
	if !regexp.MustCompile(`bme280/temperature +17\.2`).MatchString(said) {
		t.Error("there is no reading of the BME280")
	}
	config := p.does(t, "cat /etc/agentsite/agentsite.yaml && agentsite check /etc/agentsite/agentsite.yaml")
	if !strings.HasPrefix(config, "# At each start, agentsite adds the sensors") || strings.Contains(config, "safe:") {
		t.Errorf("the first start made\n%s", config)
	}
}

// card: once the site is claimed, the boot partition has no instructions for the claim any more.
// The site takes a configuration that the owner writes there.
func (p packaged) card(t *testing.T) {
	p.SetPlugged(t, false)
	harness.WaitFor(t, 60*time.Second, "the card does not say how to claim the site", func() bool {
		exit, _, _ := p.sh(t, "test -e /boot/firmware/agentsite-claim.txt")
		return exit != 0
	})
	// A configuration on the card, with a mistake and without.
	p.WriteFile(t, "/boot/firmware/agentsite.yaml", "site: { name: shed }\ndevices:\n  x: { driver: none }\n")
	p.does(t, "systemctl restart agentsite && grep -q 'agentsite.yaml:3:' /boot/firmware/agentsite-errors.txt && grep -q 'adds the sensors' /etc/agentsite/agentsite.yaml")
	p.WriteFile(t, "/boot/firmware/agentsite.yaml", "site: { name: card }\ndevices:\n  x: { driver: host }\n")
	p.does(t, "systemctl restart agentsite && cmp /boot/firmware/agentsite.yaml /etc/agentsite/agentsite.yaml && test ! -e /boot/firmware/agentsite-errors.txt")
	p.does(t, "rm -r /run/systemd/system/agentsite-claim.service.d /run/systemd/system/agentsite-prepare.service.d /root/.config /boot/firmware/agentsite.yaml && systemctl daemon-reload")
}

// everything names what is ours on a system.
const everything = `find / -xdev -name '*agentsite*' -not -path '/var/log/*' -not -path '/root/*' -not -path '/var/lib/dpkg/*'; grep -h agentsite /etc/passwd /etc/group /var/lib/dpkg/status; systemctl list-units --all --plain --no-legend '*agentsite*'; true`

func (p packaged) identity(t testing.TB) string {
	t.Helper()
	return p.does(t, "setpriv --reuid=agentsite --regid=agentsite --clear-groups agentsite identity --data /var/lib/agentsite --json")
}

// confined: the service has no superuser's rights, and its guard has the priority that it
// requested.
func (p packaged) confined(t *testing.T) {
	for _, pid := range strings.Fields(p.does(t, "cat /sys/fs/cgroup/system.slice/agentsite.service/cgroup.procs")) {
		status := p.ReadFile(t, "/proc/"+pid+"/status")
		for _, want := range []string{"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "Seccomp:\t2"} {
			if !strings.Contains(status, want) {
				t.Errorf("process %s has no %q:\n%s", pid, want, status)
			}
		}
		if strings.Contains(status, "Uid:\t0") {
			t.Errorf("process %s is the superuser's", pid)
		}
	}
	if log := p.does(t, "journalctl -u agentsite --no-pager -o cat"); strings.Contains(log, "real-time") || strings.Contains(log, "cannot be locked") || strings.Contains(log, "claim cannot") || strings.Contains(log, "not permitted") {
		t.Errorf("the log says:\n%s", log)
	}
	const peers = ":211B " // 8475
	if !strings.Contains(p.ReadFile(t, "/proc/net/tcp"), peers) || !strings.Contains(p.ReadFile(t, "/proc/net/udp"), peers) {
		t.Error("it does not listen for peers")
	}
}

// killed: outputs that the site left on go to safe, whichever process is left to do that, and the
// site starts again.
func (p packaged) killed(t *testing.T) {
	for who, kill := range map[string]string{
		"the site":      "kill -9 $(systemctl show -P MainPID agentsite)",
		"and its guard": "systemctl kill --signal=KILL agentsite",
	} {
		p.on(t)
		was := p.does(t, "systemctl show -P MainPID agentsite")
		begun := time.Now()
		p.does(t, kill)
		p.WaitForLine(t, relayLine, false)
		t.Logf("%s killed: %.1f s until the relay is off", who, time.Since(begun).Seconds())
		p.within(t, 60, "! systemctl show -P MainPID agentsite | grep -qxE '0|"+was+"'")
		p.active(t)
		p.reached(t)
	}
}

// configured: an owner changes the configuration of the confined service, without the site's user being able to write
// it. One that is not well is rolled back, and one that changes what the superuser does is refused.
func (p packaged) configured(t *testing.T) {
	const file = "/etc/agentsite/agentsite.yaml"
	const state = "stat -c '%U %G %a' " + file + " /etc/agentsite; stat -c '%U %a' /run/agentsite-config.sock"
	was, mode := p.ReadFile(t, file), p.does(t, state)
	if !strings.HasSuffix(mode, "agentsite 600") {
		t.Error(mode)
	}
	replace := func(text, flags string, code int, want string) {
		t.Helper()
		p.WriteFile(t, "/root/new.yaml", text)
		exit, out, errs := p.sh(t, "agentsite config replace /root/new.yaml --data /var/lib/agentsite "+flags)
		if exit != code {
			t.Errorf("%s%s\nwent %d, want %d:\n%s%s", was, text, exit, code, out, errs)
		}
		if now := p.ReadFile(t, file); now != want {
			t.Errorf("the configuration is\n%s\nwant\n%s", now, want)
		}
	}
	with := was + "  valve: { driver: sim, model: relay }\n"
	replace(with, "", 0, with)
	replace(with+"  air: { driver: bme280, bus: i2c-77 }\n", "--well", 6, with)
	replace(with+"  air: { driver: \"kernel:bme280\", bus: i2c-77, address: 0x76 }\n", "", 3, with)
	replace(with+"agents:\n  look: { kind: mcp, command: [id], tools: [go] }\n", "", 3, with)
	if now := p.does(t, state); now != mode {
		t.Errorf("%s was %s", now, mode)
	}
	p.does(t, "! setpriv --reuid=agentsite --regid=agentsite --init-groups sh -c 'echo >>"+file+"' 2>/dev/null")
	p.does(t, "test -z \"$(ls /run/systemd/system/ | grep agentsite-child)\"")
	p.does(t, "systemctl restart agentsite")
	p.active(t)
	p.reached(t)
	p.does(t, "agentsite points --data /var/lib/agentsite | grep -q valve/relay")
}

func (p packaged) stopped(t *testing.T) {
	p.on(t)
	p.does(t, "systemctl stop agentsite")
	if p.Level(t, relayLine) {
		t.Error("the relay is on after a stop")
	}
	p.does(t, "systemctl start agentsite")
	p.reached(t)
}

// updated: a signed newer program takes over. Programs that do not start, or hang, are rolled back.
// Updates that are old, altered or not signed are refused.
func (p packaged) updated(t *testing.T) {
	key := releaseKey(t)
	give := func(version string, sequence uint64, program []byte, by identity.Key) {
		t.Helper()
		var b bytes.Buffer
		if err := update.Sign(&b, update.Release{Version: version, Sequence: sequence, Target: "linux/arm64"}, program, by); err != nil {
			t.Fatal(err)
		}
		p.WriteFile(t, "/root/bad.update", b.String())
	}
	version := func() string { t.Helper(); return p.does(t, "agentsite version") }

	p.on(t)
	p.give(t, only(t, 2, "*_arm64.update"), "/root/2.update")
	begun := time.Now()
	t.Log(p.does(t, "agentsite update /root/2.update 2>&1"))
	t.Logf("%.1f s for an update", time.Since(begun).Seconds())
	if p.Level(t, relayLine) || !strings.Contains(version(), "v1.0.1") {
		t.Errorf("%s runs, and the relay is on: %v", version(), p.Level(t, relayLine))
	}
	p.reached(t)

	refused := func(what, want string) {
		t.Helper()
		exit, _, errs := p.sh(t, "agentsite update /root/bad.update")
		if exit == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", what, exit, errs)
		}
	}
	give("v1.0.3", 4e9, []byte("x"), identity.New())
	refused("a stranger's", "not signed")
	give("v0.9.0", 1, []byte("x"), key)
	refused("an old one", "older")

	// It may hang for thirty seconds here, and for 65 where nobody says otherwise.
	p.does(t, "for unit in agentsite agentsite-prepare; do mkdir -p /run/systemd/system/$unit.service.d && printf '[Service]\nTimeoutStartSec=15\n' >/run/systemd/system/$unit.service.d/test.conf; done; systemctl daemon-reload")
	for what, program := range map[string]string{"one that does not start": "no program\n", "one that hangs": "#!/bin/sh\nexec sleep 1000\n"} {
		begun := time.Now()
		give("v1.0.3", 4e9, []byte(program), key)
		refused(what, "v1.0.3")
		t.Logf("%s: %.1f s until the one before is back", what, time.Since(begun).Seconds())
		p.active(t)
		p.reached(t)
		if !strings.Contains(version(), "v1.0.1") {
			t.Errorf("%s: %s runs", what, version())
		}
	}
	t.Log(p.does(t, "journalctl -u agentsite-prepare --no-pager -o cat"))
	var shown struct{ Failed, Before string }
	_, out, _ := p.sh(t, "agentsite update --check --json --releases http://127.0.0.1:1") // no channel is reachable
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Failed != "v1.0.3" {
		t.Errorf("%+v %v", shown, err)
	}
}

// TestPackageARMv6: the program of the package for 32-bit boards runs on the oldest of them.
func TestPackageARMv6(t *testing.T) {
	harness.Need(t, "qemu-arm-static", harness.ARMv6Program)
	dir := harness.TempDir(t)
	harness.MustRun(t, "dpkg-deb", "-x", only(t, 1, "*_armhf.deb"), dir)
	if got := harness.MustRun(t, "qemu-arm-static", "-cpu", "arm1176", filepath.Join(dir, "usr/lib/agentsite/agentsite"), "version"); !strings.HasPrefix(got, "agentsite v1.0.0 ") {
		t.Error(got)
	}
}

// TestPackagesAreTheSame: made again in another folder, every file has the same bytes.
func TestPackagesAreTheSame(t *testing.T) {
	harness.Need(t, "the packages", packages)
	one, err := os.ReadFile(only(t, 1, "SHA256SUMS"))
	two, err2 := os.ReadFile(only(t, 0, "SHA256SUMS"))
	if err := errors.Join(err, err2); err != nil || !bytes.Equal(one, two) || bytes.Count(one, []byte("\n")) < 6 {
		t.Errorf("%v\n%s\nand\n%s", err, one, two)
	}
}

// releaseKey signs as the makers of the packages do.
func releaseKey(t testing.TB) identity.Key {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(packages, "key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.ParsePEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
