//go:build e2e && linux

package install

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// mainsLine is high while mains is away, as on some UPS boards.
const mainsLine = 6

// TestPoweredOff: mains goes away and the gauge of the UPS falls. The machine powers itself off, with its outputs at
// safe, and comes up again with nothing lost. While mains is there, and while the gauge fails, it stays on.
func TestPoweredOff(t *testing.T) {
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	harness.Need(t, "the packages", packages)
	disk := filepath.Join(harness.TempDir(t), "root.img") // which two starts share
	copyFile(t, filepath.Join(dir, "debian/root.img"), disk)
	start := func() packaged {
		const words = "console=ttyAMA0 root=/dev/vda net.ifnames=0 systemd.show_status=0 systemd.mask=getty.target"
		m := harness.Boot(t, 120*time.Second, filepath.Join(dir, "virt/disk"), words,
			"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512", "-drive", "file="+disk+",if=virtio,format=raw",
			"-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
		p := packaged{m}
		harness.WaitFor(t, 120*time.Second, "systemd has started", func() bool {
			_, out, _ := p.sh(t, "systemctl is-system-running --wait")
			return strings.TrimSpace(out) == "running" || strings.TrimSpace(out) == "degraded"
		})
		return p
	}
	p := start()
	p.SetState(t, "max17043", "ok")
	p.SetInput(t, "max17043", "charge", 80, "voltage", 4.0)
	p.SetPlugged(t, true)
	p.Pull(t, mainsLine, false)
	p.install(t, 1)
	port := p.URL[strings.LastIndex(p.URL, ":")+1:]
	p.WriteFile(t, "/etc/agentsite/agentsite.yaml", "site: { name: shed }\n"+
		"http: { listen: 127.0.0.1:"+port+" }\ndevices:\n"+
		"  ups: { driver: max17043, bus: "+p.Bus(t)+", every: 1s }\n"+
		"  mains: { driver: gpio-in, pin: GPIO6, active_low: on }\n"+
		"  relay: { driver: relay, pin: GPIO17, safe: off, min_off: 0s, max_on: 1h, lease: 1h }\n"+
		"power: { off_when: ups/charge < 10 % and mains/input is off, for: 10s }\n")
	p.does(t, "systemctl restart agentsite")
	token := p.ReadFile(t, "/var/lib/agentsite/token")
	p.Token = strings.TrimSpace(token)
	if err := os.WriteFile(filepath.Join(p.Folder, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	p.reached(t)
	who := p.identity(t)

	says := func(what string) {
		t.Helper()
		harness.WaitFor(t, time.Minute, "the agent says "+what, func() bool {
			_, out, _ := p.sh(t, "agentsite agents --data /var/lib/agentsite")
			return strings.Contains(out, what)
		})
	}
	p.SetInput(t, "max17043", "charge", 4, "voltage", 3.3)
	says("idle") // mains is there
	p.Pull(t, mainsLine, true)
	says("is powered off in") // in five minutes: the machine has just started
	p.SetState(t, "max17043", "absent")
	says("is not known")
	if mode := p.does(t, "stat -c '%U %a' /run/agentsite-poweroff.sock"); mode != "agentsite 600" {
		t.Error(mode)
	}
	p.SetState(t, "max17043", "ok")
	p.SetInput(t, "max17043", "charge", 4, "voltage", 3.3)
	says("is powered off in")
	p.on(t)

	defer func() {
		if t.Failed() {
			_, out, _ := p.sh(t, "cat /proc/uptime; agentsite agents --data /var/lib/agentsite; agentsite read --data /var/lib/agentsite; "+
				"journalctl -u agentsite -u 'agentsite-poweroff*' --no-pager -o short-monotonic | tail -60")
			t.Log(out)
		}
	}()
	begun, safe, level := time.Now(), false, p.SimulatedLine(t, relayLine)+"value"
	harness.WaitFor(t, 8*time.Minute, "the machine is off", func() bool {
		out, err := p.AskWithin(2*time.Second, "GET", "/file", nil, "path", level)
		safe = safe || err == nil && strings.Contains(string(out), "0")
		conn, err := net.DialTimeout("tcp", strings.TrimPrefix(p.Control, "http://"), time.Second)
		if err == nil {
			conn.Close()
		}
		return err != nil // nobody forwards the port any more
	})
	t.Logf("%.0f s until the machine is off; its relay was seen to be safe: %v", time.Since(begun).Seconds(), safe)

	p = start()
	p.active(t)
	if now := p.ReadFile(t, "/var/lib/agentsite/token"); now != token || p.identity(t) != who {
		t.Error("it is another site")
	}
	journal := p.does(t, "agentsite journal --data /var/lib/agentsite")
	for _, want := range []string{"the machine is powered off", "relay/relay"} {
		if !strings.Contains(journal, want) {
			t.Errorf("the journal has no %q:\n%s", want, journal)
		}
	}
}

// copyFile copies a file with its holes.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	info, err := in.Stat()
	if err == nil {
		err = out.Truncate(info.Size())
	}
	block, zero := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); err == nil && at < info.Size(); at += int64(len(block)) {
		var n int
		if n, err = in.ReadAt(block, at); err == io.EOF {
			err = nil
		}
		if err == nil && string(block[:n]) != string(zero[:n]) {
			_, err = out.WriteAt(block[:n], at)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
