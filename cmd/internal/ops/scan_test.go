package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentsite/device"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"
	"agentsite/device/scan"
	"agentsite/node/config"
	"agentsite/node/state"

	"periph.io/x/conn/v3/physic"
)

// chips is a bus with a BMP280 at each of some addresses. It notes who is asked.
type chips struct {
	at    []uint16
	asked []uint16
}

func (c *chips) String() string                  { return "chips" }
func (c *chips) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (c *chips) Tx(addr uint16, w, r []byte) error {
	c.asked = append(c.asked, addr)
	if !slices.Contains(c.at, addr) {
		return fmt.Errorf("fake: %w", syscall.ENXIO)
	}
	switch {
	case len(w) == 1 && w[0] == 0xD0:
		copy(r, []byte{0x58})
	case len(r) > 0:
		r[len(r)-1] = 0x55 // not every byte is the same
	}
	return nil
}

func scanOn(t *testing.T, bus *chips, file string) *ScanResult {
	t.Helper()
	s, err := Scan(t.Context(), ScanOptions{Config: file, Drivers: allDrivers(), Folder: state.Folder(t.TempDir()), Bus: "i2c-1", Root: t.TempDir(), Board: boardtest.I2C(bus)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScanWithoutANetwork: a scan on a board without a network says so once, and has not failed.
func TestScanWithoutANetwork(t *testing.T) {
	t.Chdir(t.TempDir())
	alone := func(context.Context) ([]driver.Found, error) { return nil, errors.New("there is no network") }
	s, err := Scan(t.Context(), ScanOptions{
		Drivers: []driver.Driver{{Name: "esphome", Seek: alone}, {Name: "thing", Seek: alone}},
		Folder:  state.Folder(t.TempDir()), Board: boardtest.I2C(&chips{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.Trouble {
		if strings.Contains(f.Says, "network") {
			t.Errorf("it has failed: %s", f.Says)
		}
	}
	if len(s.Notes) != 1 {
		t.Errorf("notes: %q", s.Notes)
	}
}

// TestScanAndWrite finds a chip, writes it into a file that is a link, and then
// leaves it alone.
func TestScanAndWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("real.yaml", []byte("site: { name: shed }\ndevices:\n  bmp280: { driver: bmp280, bus: i2c-1, address: 0x77 }\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", "link.yaml"); err != nil {
		t.Skip(err)
	}
	bus := &chips{at: []uint16{0x76, 0x77, 0x20}}
	s := scanOn(t, bus, "link.yaml")
	want := []config.Entry{{Name: "bmp280-2", YAML: "{ driver: bmp280, bus: i2c-1, address: 0x76 }"}}
	if !slices.Equal(s.Add, want) || slices.Contains(bus.asked, 0x77) || len(s.Found) != 3 {
		t.Fatalf("%+v %+v; asked %#x", s.Found, s.Add, bus.asked)
	}
	stale := scanOn(t, bus, "link.yaml")
	if err := s.Write(); err != nil {
		t.Fatal(err)
	}
	if err := stale.Write(); device.AsFault(err).Kind != device.Busy {
		t.Error(err)
	}
	text, _ := os.ReadFile("real.yaml")
	info, err := os.Lstat("link.yaml")
	if err != nil || info.Mode().IsRegular() || !strings.HasSuffix(string(text), "0x77 }\n  bmp280-2: { driver: bmp280, bus: i2c-1, address: 0x76 }\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if info, _ := os.Stat("real.yaml"); info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is now %v", info.Mode())
	}
	bus.asked = nil
	if s = scanOn(t, bus, "link.yaml"); len(s.Add) != 0 || slices.Contains(bus.asked, 0x76) {
		t.Errorf("again: %+v; asked %#x", s.Add, bus.asked)
	}
}

// TestClaimed: a scan leaves the devices of a site alone, be it behind a multiplexer.
func TestClaimed(t *testing.T) {
	cfg, err := config.Parse("", []byte("site: { name: x }\ndevices:\n  a: { driver: bme280, bus: \"i2c-1/0x70:3\", address: 0x76 }\n  b: { driver: iio, name: x, bind: { bus: i2c-4, address: 0x48, chip: x } }\n"+
		"  c: { driver: ruuvi, address: CB:B8:33:4C:88:4F, lost_after: 5m }\n"), allDrivers())
	if err != nil {
		t.Fatal(err)
	}
	got := claimed(cfg)
	for what, name := range map[string]string{"i2c-1/0x70": "a", "i2c-1/0x70:3/0x76": "a", "i2c-1/0x76": "a", "i2c-4/0x48": "b", "CB:B8:33:4C:88:4F": "c"} {
		if got[what] != name {
			t.Errorf("%s is %q, want %s", what, got[what], name)
		}
	}
	found := scan.Found{Where: "CB:B8:33:4C:88:4F", Devices: []scan.Device{{Name: "x", YAML: "{ driver: ruuvi, address: CB:B8:33:4C:88:4F }"}}}
	if !inUse(cfg, scan.Scan{Taken: got, Drivers: allDrivers()}, found) {
		t.Error("a sensor with other keys is offered again")
	}
	s := scan.Scan{Buses: []string{"i2c-1"}, Probe: []uint16{0x20, 0x76}, Taken: got}
	if err := checkProbe(s, false); err == nil || !strings.Contains(err.Error(), "0x76 on i2c-1 is not probed") {
		t.Error(err)
	}
}

// TestComplete holds what --write accepts to devices that need no more
// words and move nothing.
func TestComplete(t *testing.T) {
	for yaml, want := range map[string]bool{
		"{ driver: bme280 }": true, "{ driver: kernel:bme280, bus: i2c-1, address: 0x76 }": true, "{ driver: thermal, zone: \"a b\" }": true,
		"{ driver: sim }": false, "{ driver: pwm, chip: pwmchip0 }": false, "{ driver: w1, id: 1 }": false, "{ driver: none }": false, "{ driver: bme280": false,
	} {
		if got := complete(config.Entry{Name: "a", YAML: yaml}, allDrivers()); got != want {
			t.Errorf("%s: %v", yaml, got)
		}
	}
}

func TestWriteAtomicFails(t *testing.T) {
	dir := t.TempDir()
	s := ScanResult{File: filepath.Join(dir, "none", "agentsite.yaml"), drivers: allDrivers(), Add: []config.Entry{{Name: "a", YAML: "{ driver: bme280 }"}}}
	if err := s.Write(); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Error(err)
	}
}

func TestFolderFindings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{dir: "", filepath.Join(dir, "new"): "note: ", file: "problem: "} {
		got := ""
		for _, f := range folderFindings(state.Folder(folder), false) {
			got = string(f.Severity) + ": " + f.Says
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", folder, got, want)
		}
	}
	if err := os.WriteFile(state.Folder(dir).Path(state.TokenFile), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := folderFindings(state.Folder(dir), false); len(f) != 1 || !strings.HasPrefix(f[0].Do, "chmod 600 ") {
		t.Errorf("a token that all can read: %+v", f)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".new-*")); names != nil {
		t.Errorf("left behind: %v", names)
	}
}
