//go:build e2e && linux

package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/discovery/bed"

	"github.com/chromedp/chromedp"
)

// invitationLine matches the line that an unclaimed site shows.
var invitationLine = regexp.MustCompile(`agentsite claim (agentsite://[^/\s]+/([\w-]{22})/)\S+`)

// claimed claims a site in the page, which knows none, by the line that the site shows and a new passkey.
func (b *tab) claimed(o *opened, line string) {
	b.t.Helper()
	b.authenticator()
	b.addPasskey(o, 1)
	run[bool](b, "location.hash = '#claim', true")
	b.fill("[name=words]", line)
	b.press("main [data-act=claim]")
	if screen := o.asked(2); !strings.Contains(screen, "claim") {
		b.t.Errorf("the terminal does not show the claim:\n%s", screen)
	}
	b.press("main [data-act=passkey]")
	b.is(time.Minute, "location.hash.startsWith('#site')")
	b.is(time.Minute, `document.querySelector("[data-net=live]")`)
	if !strings.Contains(o.screen.String(), "recovery code") {
		b.t.Errorf("the terminal shows no recovery code:\n%s", o.screen)
	}
}

// TestClaim: who knows no site claims one in the page, by the line that it shows and a passkey, with nothing at the
// terminal. A wrong line, and a person who refuses, change nothing.
func TestClaim(t *testing.T) {
	t.Parallel()
	_, invitation := harness.StartUnclaimed(t, harness.TempDir(t))
	o := openPage(t, harness.NewPerson(t), "")
	b := newBrowser(t)
	b.open(o.Link)
	b.press("[data-claim]")
	b.fill("[name=words]", "agentsite://nothing")
	b.press("main [data-act=claim]")
	b.is(10*time.Second, `document.querySelector("main .note.bad")`)
	b.fill("[name=words]", invitation.String())
	b.press("main [data-act=claim]")
	o.asked(1)
	o.typed("n\n")
	b.is(10*time.Second, `document.querySelector("main .note.bad")`)
	b.authenticator()
	b.addPasskey(o, 2)
	run[bool](b, "location.hash = '#claim', true")
	b.fill("[name=words]", "agentsite claim "+invitation.String())
	b.press("main [data-act=claim]")
	o.asked(3)
	b.press("main [data-act=passkey]")
	b.is(30*time.Second, "location.hash.startsWith('#site')")
	b.live()
}

// TestClaimNear: a board that nobody owns is in the house, as discover finds it, until its owner claims it there by
// the secret that it shows.
func TestClaimNear(t *testing.T) {
	t.Parallel()
	net := bed.New(t)
	here := net.Host("10.77.0.100/24")
	laptop := harness.NewLaptop(t, here)
	site := harness.StartOn(t, net.Host("10.77.0.1/24"), harness.TempDir(t), "shed")
	o := started(t, laptop.Command(context.Background(), "open", "--no-browser", "--data", harness.TempDir(t)))
	chromium, _ := exec.LookPath("chromium")
	script := filepath.Join(harness.TempDir(t), "chromium")
	words := append([]string{"exec"}, bed.On(here, harness.Need(t, "chromium", chromium))...)
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"+strings.Join(words, " ")+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, chromedp.ExecPath(script))
	b.open(o.Link)
	b.press("[data-near=shed]")
	b.fill("[name=words]", site.Invitation(t).Secret.Text())
	b.press("main [data-act=claim]")
	if screen := o.asked(1); !strings.Contains(screen, site.DID(t)) {
		t.Errorf("the terminal does not name the key:\n%s", screen)
	}
	o.typed("\n")
	b.is(30*time.Second, "location.hash.startsWith('#site')")
	b.live()
	run[bool](b, "location.hash = '#house', true")
	b.is(30*time.Second, `document.querySelector("[data-site=shed]") && !document.querySelector("[data-near]")`)
}

// TestFlashed: from a flashed board that nobody owns to the chart of its BME280 and a relay that was added in the
// page, confirmed by a passkey. The person is at their own computer, and has no terminal of the board.
func TestFlashed(t *testing.T) {
	t.Parallel()
	dir := harness.Need(t, "the emulated board", harness.TestbedDir)
	packages, err := filepath.Glob(filepath.Join(harness.Need(t, "the packages", os.Getenv("PACKAGES")), "1/*_arm64.deb"))
	if err != nil || len(packages) != 1 {
		t.Fatal(packages, err)
	}
	deb, err := os.ReadFile(packages[0])
	if err != nil {
		t.Fatal(err)
	}
	m := harness.Boot(t, 120*time.Second, filepath.Join(dir, "virt/disk"),
		"console=ttyAMA0 root=/dev/vda net.ifnames=0 systemd.show_status=0 systemd.mask=getty.target",
		"-M", "virt", "-cpu", "cortex-a53", "-smp", "1", "-m", "512",
		"-drive", "file="+filepath.Join(dir, "debian/root.img")+",if=virtio,format=raw,snapshot=on",
		"-kernel", filepath.Join(dir, "virt/vmlinuz"), "-device", "virtio-net-pci,netdev=net0,romfile=")
	sh := func(line string) (string, bool) {
		exit, out, errs := m.Run(t, "/bin/sh", "-c", "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root; "+line)
		return out + errs, exit == 0
	}
	harness.WaitFor(t, 120*time.Second, "systemd has started", func() bool {
		out, _ := sh("systemctl is-system-running --wait")
		return strings.HasPrefix(out, "running") || strings.HasPrefix(out, "degraded")
	})
	m.SetPlugged(t, true)
	m.SetInput(t, "bme280", "temperature", 17.4)

	// The board is flashed, and shows how to claim it.
	m.WriteFile(t, "/root/agentsite.deb", string(deb))
	// While dpkg is at it, udev handles a device, and reads the rules for that.
	if out, ok := sh("dpkg --unpack /root/agentsite.deb && udevadm control --reload && " +
		"udevadm trigger --subsystem-match=i2c-dev --settle && dpkg --configure agentsite"); !ok {
		t.Fatal(out)
	}
	var shown []string
	harness.WaitFor(t, 120*time.Second, "the board shows how to claim it", func() bool {
		out, _ := sh("cat /var/lib/agentsite/agentsite-claim.txt")
		shown = invitationLine.FindStringSubmatch(out)
		return shown != nil
	})
	harness.WaitFor(t, 120*time.Second, "it is ready", func() bool {
		_, ready := sh("systemctl -q is-active agentsite")
		return ready
	})
	before := m.ReadFile(t, "/etc/agentsite/agentsite.yaml")

	// At the person's computer. The emulated board's address is another one there.
	o := openPage(t, harness.NewPerson(t), "")
	b := newBrowser(t)
	press := func(selector string) { // an emulated board beside others takes its time
		t.Helper()
		b.is(2*time.Minute, "document.querySelector("+quote(selector)+")")
		b.press(selector)
	}
	b.open(o.Link)
	b.claimed(o, shown[1]+m.LAN)

	// Its first start has added the sensor. Its chart:
	press("[data-point='bme280/temperature']")
	b.is(2*time.Minute, `document.querySelector("main svg") && document.querySelector("main").textContent.includes("17.4")`)

	// The relay is added in the page.
	run[bool](b, "location.hash = '#board', true")
	press("[data-act=add]")
	b.fill("#driver", "relay")
	press("[data-driver=relay] [data-act=take]")
	b.is(2*time.Minute, `document.querySelector("[name=pin]")`)
	b.fill("[name=device]", "pump")
	b.fill("[name=pin]", "GPIO17")
	b.fill("[name=safe]", "off")
	b.fill("[name=max_on]", "10m")
	press("[data-act=see]")
	b.is(2*time.Minute, `document.querySelector("[data-change]")?.textContent.includes("+   pump: ")`)
	press(`[data-act="owner/configure"]`)
	o.asked(3)
	press("[data-act=passkey]")
	b.is(2*time.Minute, "location.hash.startsWith('#site')")
	if now := m.ReadFile(t, "/etc/agentsite/agentsite.yaml"); !strings.HasPrefix(now, strings.TrimRight(before, "\n")) || !strings.Contains(now, "pump:") {
		t.Errorf("the configuration was\n%s\nand is\n%s", before, now)
	}
	press(`[data-output="pump/relay"]`)
	const hold = `article[data-output="pump/relay"] [data-act=move]`
	b.is(2*time.Minute, fmt.Sprintf("document.querySelector(%s + ':not([aria-disabled])')", quote(hold)))
	b.hold(hold, func() { m.WaitForLine(t, 17, true) })
}
