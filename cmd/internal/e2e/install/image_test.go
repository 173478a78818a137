//go:build e2e && linux

package install

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/update"
)

// flashed is an SD card in an emulated Raspberry Pi 3, and the part of the board that QEMU lacks:
// the firmware, which selects the version to boot from the card.
type flashed struct {
	card    string
	dir     string
	port    string // HTTPS of the site, on this machine
	control string // the guest's, where one rides along
	knock   map[int]string
	key     identity.Key
	// tryboot is the flag of the last reboot: the firmware boots the other version once.
	tryboot bool
}

// powered is a board that is switched on.
type powered struct {
	*flashed
	slot    int
	console *harness.LogBuffer
	ended   chan error
	cmd     *exec.Cmd
	begun   time.Time
}

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
	p.waitForConsole(t, "is confirmed")
	p.powerOff(t)

	t.Log("== an update on the card")
	f.write(t, "agentsite.update", f.update(t, 2, harness.ARM64Program))
	p = f.powerOn(t, false)
	p.restarts(t)
	if !f.tryboot {
		t.Fatalf("the board does not try the update:\n%s", p.console)
	}

	t.Log("== the update on trial")
	f.write(t, "agentsite.update", f.update(t, 3, "/bin/false"))
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
	p.waitForConsole(t, "the site has exited: killed")
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
	p.waitForConsole(t, "the site has exited: no WATCHDOG=1 for 30s")
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

// flash makes a card with version 1.
func flash(t *testing.T) *flashed {
	dir := harness.TempDir(t)
	f := &flashed{card: filepath.Join(dir, "card.img"), dir: dir, port: harness.FreePort(t), control: harness.FreePort(t), knock: make(map[int]string), key: identity.New()}
	for _, port := range []int{21, 22, 23, 53, 80, 111, 443, 445, 1883, 2222, 5353, 5355, 8080, 8443, 8473, 9090} {
		f.knock[port] = harness.FreePort(t)
	}
	f.build(t, 1, harness.ARM64Program, "image", f.card)
	// QEMU takes cards of such sizes only.
	if err := os.Truncate(f.card, 1<<30); err != nil {
		t.Fatal(err)
	}
	return f
}

// build makes an image or a version for one, with a program in the place of agentsite's.
func (f *flashed) build(t *testing.T, sequence int, agentsite string, args ...string) {
	begun := time.Now()
	cmd := exec.Command("../../../../deploy/image/build", args...)
	cmd.Env = append(os.Environ(), "VERSION="+strconv.Itoa(sequence), "SEQUENCE="+strconv.Itoa(sequence), "RELEASE_KEYS="+f.key.ID().String(), "AGENTSITE="+agentsite)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%.1f s to build %v", time.Since(begun).Seconds(), args[0])
}

// update is a signed update for the image.
func (f *flashed) update(t *testing.T, sequence int, agentsite string) []byte {
	file := filepath.Join(f.dir, "slot")
	f.build(t, sequence, agentsite, "slot", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var signed bytes.Buffer
	if err := update.Sign(&signed, update.Release{Version: strconv.Itoa(sequence), Sequence: uint64(sequence), Target: "image/arm64"}, text, f.key); err != nil {
		t.Fatal(err)
	}
	return signed.Bytes()
}

// partition is how mtools calls a partition of the card.
func (f *flashed) partition(t testing.TB, n int) string {
	t.Helper()
	card, err := os.Open(f.card)
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	var entry [16]byte
	if _, err := card.ReadAt(entry[:], 446+16*int64(n-1)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s@@%d", f.card, int64(binary.LittleEndian.Uint32(entry[8:]))*512)
}

func mtools(t testing.TB, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out
}

// write writes a file to the boot partition, as a computer does that the card is put into.
func (f *flashed) write(t testing.TB, name string, content []byte) {
	t.Helper()
	file := filepath.Join(f.dir, name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	mtools(t, "mcopy", "-o", "-i", f.partition(t, 1), file, "::"+name)
}

var bootPartition = regexp.MustCompile(`(?s)^\[all\]\ntryboot_a_b=1\nboot_partition=(\d)\n\[tryboot\]\nboot_partition=(\d)\n$`)

// powerOn does as the firmware does: it reads which version to start, loads that, and
// starts it. A guest may ride along in the place of the DHCP client.
func (f *flashed) powerOn(t testing.TB, guest bool) *powered {
	t.Helper()
	autoboot := mtools(t, "mtype", "-i", f.partition(t, 1), "::autoboot.txt")
	slots := bootPartition.FindSubmatch(autoboot)
	if slots == nil {
		t.Fatalf("no firmware understands\n%s", autoboot)
	}
	p := &powered{flashed: f}
	p.slot, _ = strconv.Atoi(string(slots[1]))
	if f.tryboot {
		p.slot, _ = strconv.Atoi(string(slots[2]))
	}
	f.tryboot = false
	dir := harness.TempDir(t)
	for _, name := range []string{"vmlinuz", "system", "cmdline.txt", "bcm2710-rpi-3-b.dtb"} {
		mtools(t, "mcopy", "-i", f.partition(t, p.slot), "::"+name, dir+"/")
	}
	words, err := os.ReadFile(filepath.Join(dir, "cmdline.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if guest {
		f.addGuest(t, filepath.Join(dir, "system"))
	}
	dtb := filepath.Join(dir, "bcm2710-rpi-3-b.dtb")
	// QEMU's board has no radios there, and takes the start of its watchdog for its end.
	for _, radio := range []string{"/soc/serial@7e201000/bluetooth", "/soc/mmcnr@7e300000"} {
		mtools(t, "fdtput", "-t", "s", dtb, radio, "status", "disabled")
	}
	network := fmt.Sprintf("user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:8474,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[2]s", f.port, f.control)
	for port, at := range f.knock {
		network += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%d", at, port)
	}
	args := []string{"300", "nice", "qemu-system-aarch64", "-M", "raspi3b", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
		"-d", "unimp", "-D", filepath.Join(dir, "qemu.log"),
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "system"), "-dtb", dtb, "-drive", "file=" + f.card + ",if=sd,format=raw",
		"-append", strings.TrimSpace(string(words)) + " earlycon=pl011,0x3f201000 console=ttyAMA1,115200 dwc_otg.lpm_enable=0 initcall_blacklist=bcm2835_wdt_driver_init port=9 control=" + f.control,
		"-netdev", network, "-device", "usb-net,netdev=net0,mac=b8:27:eb:00:00:01"}
	// About one time in ten, more often on a busy machine, the kernel panics before its first
	// process on QEMU's board. A user of a board waits until it has restarted.
	for try := 1; ; try++ {
		p.run(t, args, filepath.Join(dir, "qemu.log"))
		if p.begins() {
			return p
		}
		p.powerOff(t)
		if try == 5 {
			t.Fatalf("the board does not start:\n%s", p.console)
		}
		t.Log("the kernel does not come up, and is started again")
	}
}

// run switches the board on.
func (p *powered) run(t testing.TB, args []string, log string) {
	t.Helper()
	p.console, p.ended, p.begun = &harness.LogBuffer{}, make(chan error, 1), time.Now()
	cmd, console, ended := exec.Command("timeout", args...), p.console, p.ended
	cmd.Stdout, cmd.Stderr = console, console
	result := harness.StartEmulator(t, cmd)
	p.cmd = cmd
	go func() {
		ended <- <-result
		text, _ := os.ReadFile(log)
		console.Write(text)
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		for range ended {
		}
		if t.Failed() {
			t.Logf("the console:\n%s", console)
		}
	})
}

// noNetwork is the kernel's message when QEMU's network card, which is on USB, was too slow on a
// busy machine. The kernel does not look for that card again.
const noNetwork = "can't set config #1, error -110"

// begins reports whether the image's first process says something, on a board with a network.
func (p *powered) begins() bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		switch said, _, begins := strings.Cut(p.console.String(), "agentsite image"); {
		case restarting.MatchString(said), strings.Contains(said, noNetwork):
			return false
		case begins:
			return true
		}
	}
	return false
}

// addGuest appends the guest to the system, in the place of the DHCP client.
func (f *flashed) addGuest(t testing.TB, system string) {
	t.Helper()
	dir := harness.TempDir(t)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(harness.GuestProgram)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bin", "dhcp"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cpio", "-o", "-H", "newc", "--quiet")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader("bin/dhcp\n")
	archive, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(system)
	if err != nil {
		t.Fatal(err)
	}
	packed = append(packed, make([]byte, -len(packed)&3)...)
	if err := os.WriteFile(system, append(packed, archive...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *powered) seconds() float64 { return time.Since(p.begun).Seconds() }

func (p *powered) powerOff(t testing.TB) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	for range p.ended {
	}
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
