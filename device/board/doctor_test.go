package board_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// here is a bus on which one address answers reads. It fails the test if anything
// is written.
type here struct {
	t       *testing.T
	address uint16
}

func (h here) String() string                    { return "here" }
func (h here) SetSpeed(f physic.Frequency) error { return nil }
func (h here) Tx(addr uint16, w, r []byte) error {
	if len(w) > 0 || len(r) != 1 {
		h.t.Errorf("%#x: %d bytes written, %d read", addr, len(w), len(r))
	}
	if addr == h.address {
		return nil
	}
	return fmt.Errorf("sysfs-i2c: %v", syscall.ENXIO)
}

func machine(t *testing.T, files map[string]string, chips ...*boardtest.Chip) *board.Board {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		path = filepath.Join(root, path)
		os.MkdirAll(filepath.Dir(path), 0o755)
		var err error
		if to, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Skipf("this system cannot have a file of that name: %v", err)
		}
	}
	return boardtest.Machine{I2C: map[int]i2c.Bus{1: here{t, 0x76}}, Root: root, Chips: chips}.Board()
}

func listed(findings []driver.Finding) string {
	var all []string
	for _, f := range findings {
		if f.Subject != "user" { // who runs the test
			all = append(all, fmt.Sprintf("%s %s: %s; %s", f.Severity, f.Subject, f.Says, f.Do))
		}
	}
	return strings.Join(all, "\n")
}

const pi = "Raspberry Pi 4 Model B Rev 1.4\x00"

func TestFindingsOfBuses(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a laptop": {map[string]string{"etc/x": ""}, ""},
		"a Pi with all off": {map[string]string{"proc/device-tree/model": pi, "boot/firmware/config.txt": ""},
			"note i2c-1: I2C is off; to use it add dtparam=i2c_arm=on to /boot/firmware/config.txt and reboot\n" +
				"note spi: SPI is off; to use it add dtparam=spi=on to /boot/firmware/config.txt and reboot"},
		"an older Pi without i2c-dev": {map[string]string{"proc/device-tree/model": pi, "sys/bus/i2c/devices/i2c-1/name": "bcm2835", "dev/spidev0.0": ""},
			"note i2c-1: I2C is on, but programs cannot use it; run as root: modprobe i2c-dev; and write i2c-dev into /etc/modules-load.d/i2c.conf"},
		"all on": {map[string]string{"proc/device-tree/model": pi, "dev/i2c-1": "", "dev/spidev0.0": ""}, ""},
	} {
		if got := listed(machine(t, tt.files).Findings(t.Context(), nil)); got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, tt.want)
		}
	}
}

func TestFindingsOfUses(t *testing.T) {
	b := machine(t, map[string]string{
		"proc/device-tree/model": pi, "dev/i2c-1": "", "dev/spidev0.0": "",
		"sys/bus/i2c/devices/1-0077/name": "bmp280\n", "sys/bus/i2c/devices/1-0077/driver": "->../../drivers/bmp280",
	})
	at := b.I2C()
	use := func(name, bus string, address uint16) board.Use {
		at.Bus, at.Address = bus, address
		return board.Use{Device: name, Resources: at.Resources()}
	}
	silent := use("sht", "i2c-1", 0x44)
	silent.Silent = true
	got := listed(b.Findings(t.Context(), []board.Use{
		use("climate", "i2c-1", 0x76), use("attic", "i2c-1", 0x77), use("light", "i2c-1", 0x23), silent, use("shed", "i2c-4", 0x48),
		{Device: "adc", Resources: []driver.Resource{{Name: "spidev1.0"}}}, {Device: "lamp", Resources: board.SPI{Port: "spidev0.0"}.Resources()},
	}))
	want := `problem attic: the kernel's driver bmp280 has i2c-1/0x77; write "driver: kernel:bmp280", or run as root: echo 1-0077 > /sys/bus/i2c/drivers/bmp280/unbind
problem light: nothing answers at i2c-1/0x23; check its power, SDA and SCL and the address (agentsite scan); another program may hold the bus
problem shed: there is no i2c-4 here; switch I2C on (on a Raspberry Pi dtparam=i2c_arm=on in config.txt), or plug its adapter in
problem adc: there is no spidev1.0 here; add dtparam=spi=on to /boot/config.txt and reboot`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestFindingsOfLines: lines that are missing, used by another program, or used by the running site
// itself.
func TestFindingsOfLines(t *testing.T) {
	header := boardtest.Header()
	b := boardtest.Lines(header)
	header.Take(4, "gpio-keys")
	header.Take(5, board.ConsumerOf(77))
	use := func(name string, running bool, pin board.Pin) board.Use {
		return board.Use{Device: name, Running: running, Resources: []driver.Resource{pin.Resource()}}
	}
	subjects := func(uses ...board.Use) string {
		var all []string
		for _, f := range b.Findings(t.Context(), uses) {
			if f.Severity == driver.Problem {
				all = append(all, f.Subject)
			}
		}
		return strings.Join(all, " ")
	}
	if got := subjects(use("a", true, "GPIO17"), use("b", true, "GPIO45"), use("c", true, "gpiochip3/1"), use("d", true, "GPIO4"), use("e", true, "GPIO5"), use("f", false, "GPIO5"), use("g", false, "PUMP"), use("camera", false, "camera 0")); got != "b c d f g" {
		t.Errorf("problems with %q", got)
	}
}

// TestMissing holds the lines of a configuration to those of a Raspberry Pi, and of no
// other machine.
func TestMissing(t *testing.T) {
	resources := map[string][]driver.Resource{"pump": {board.Pin("GPIO17").Resource()}, "fan": {board.Pin("GPIO45").Resource()}, "lamp": {board.Pin("PUMP").Resource()}, "light": {{Name: "i2c-1/0x23"}}}
	if err := boardtest.Lines(boardtest.NewChip("gpiochip0", "AMDI0030", "A", "B")).Missing(resources); err != nil {
		t.Errorf("a laptop: %v", err)
	}
	joined, _ := boardtest.Lines(boardtest.Header()).Missing(resources).(interface{ Unwrap() []error })
	if joined == nil || len(joined.Unwrap()) != 2 {
		t.Fatal(joined)
	}
	for i, want := range []string{"fan", "lamp"} {
		if f, ok := errors.AsType[*board.DeviceError](joined.Unwrap()[i]); !ok || f.Device != want || device.AsFault(f.Err).Kind != device.Offline {
			t.Errorf("%v, want %s", joined.Unwrap()[i], want)
		}
	}
}

func TestPermissions(t *testing.T) {
	b := machine(t, map[string]string{"dev/i2c-1": "", "dev/gpiochip0": "", "dev/gpiochip1": "", "dev/ttyUSB0": ""})
	got := listed(board.Permissions(b, func(path string) bool { return strings.HasSuffix(path, "i2c-1") }))
	want := `warning gpio: this user may not use /dev/gpiochip0; sudo usermod -aG gpio $USER, then log in again; for a service SupplementaryGroups=gpio
warning dialout: this user may not use /dev/ttyUSB0; sudo usermod -aG dialout $USER, then log in again; for a service SupplementaryGroups=dialout`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestBuses(t *testing.T) {
	b := machine(t, map[string]string{"dev/i2c-10": "", "dev/i2c-2": "", "dev/i2c-x": "", "sys/class/i2c-dev/i2c-2/name": "MCP2221 usb-i2c bridge\n"})
	if got := fmt.Sprint(b.Buses()); got != "[{i2c-2 MCP2221 usb-i2c bridge} {i2c-10 }]" {
		t.Error(got)
	}
}

func TestAnswers(t *testing.T) {
	b := machine(t, nil)
	for address, want := range map[uint16]bool{0x76: true, 0x20: false} {
		at := b.I2C()
		at.Address = address
		if got, err := at.Answers(t.Context()); err != nil || got != want {
			t.Errorf("%#x: %v %v", address, got, err)
		}
	}
	broken := boardtest.I2C(failing{}).I2C()
	broken.Address = 0x20
	if _, err := broken.Answers(t.Context()); err == nil || !errors.Is(err, errFailing) {
		t.Error(err)
	}
}

var errFailing = errors.New("it smokes")

type failing struct{ here }

func (failing) Tx(uint16, []byte, []byte) error { return errFailing }
