//go:build e2e && linux

package install

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
	"agentsite/node/update"

	"golang.org/x/sys/unix"
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
	// QEMU's board has no radios there, and takes the start of its watchdog for its end. The driver
	// of Raspberry Pi's overlay dwc2 asks less of QEMU's USB than the usual one, which makes the
	// kernel panic there one time in ten, and hang on one processor.
	for _, change := range [][3]string{
		{"/soc/serial@7e201000/bluetooth", "status", "disabled"}, {"/soc/mmcnr@7e300000", "status", "disabled"},
		{"/soc/usb@7e980000", "compatible", "brcm,bcm2835-usb"}, {"/soc/usb@7e980000", "dr_mode", "host"},
	} {
		mtools(t, "fdtput", "-t", "s", dtb, change[0], change[1], change[2])
	}
	network := fmt.Sprintf("user,id=net0,restrict=on,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:8474,hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%[2]s", f.port, f.control)
	for port, at := range f.knock {
		network += fmt.Sprintf(",hostfwd=tcp:127.0.0.1:%s-10.0.2.15:%d", at, port)
	}
	// Of the four processors one is on, which leaves the others of this machine to other tests: until
	// the kernel starts a processor, QEMU's waits for that in a loop.
	args := []string{"300", "qemu-system-aarch64", "-M", "raspi3b", "-global", "bcm2837.enabled-cpus=1", "-display", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot",
		"-d", "unimp", "-D", filepath.Join(dir, "qemu.log"),
		"-kernel", filepath.Join(dir, "vmlinuz"), "-initrd", filepath.Join(dir, "system"), "-dtb", dtb, "-drive", "file=" + f.card + ",if=sd,format=raw,aio=" + blockIO(),
		"-append", strings.TrimSpace(string(words)) + " earlycon=pl011,0x3f201000 console=ttyAMA1,115200 maxcpus=1 initcall_blacklist=bcm2835_wdt_driver_init port=9 control=" + f.control,
		"-netdev", network, "-device", "usb-net,netdev=net0,mac=b8:27:eb:00:00:01,port=1"}
	// On a busy machine QEMU's network card may be too slow for the kernel, or the kernel panics
	// before its first process. A user of a board waits until it has restarted.
	for try := 1; ; try++ {
		p.run(t, args, filepath.Join(dir, "qemu.log"))
		if p.begins(t) {
			return p
		}
		said := p.console.String()
		p.powerOff(t)
		if try == 5 {
			t.Fatalf("the board does not start:\n%s", p.console)
		}
		t.Logf("the kernel does not come up, and is started again:\n%s", said)
	}
}

// blockIO is how QEMU reads and writes the card's blocks, each of 512 bytes: io_uring wakes no thread
// for each, and takes two thirds of the processor time. Not every machine permits it.
func blockIO() string {
	var params [120]byte // struct io_uring_params
	ring, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if err != 0 {
		return "threads"
	}
	unix.Close(int(ring))
	return "io_uring"
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

// begins reports whether the image's first process says something within a minute, on a board with a
// network.
func (p *powered) begins(t testing.TB) bool {
	t.Helper()
	var begins, fails bool
	harness.WaitFor(t, 2*time.Minute, "the board begins, or fails to", func() bool {
		var said string
		said, _, begins = strings.Cut(p.console.String(), "agentsite image")
		fails = restarting.MatchString(said) || strings.Contains(said, noNetwork)
		return begins || fails || p.seconds() > 60
	})
	return begins && !fails
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
