package board_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
	"agentsite/device/driver"
)

func TestSurvey(t *testing.T) {
	chip := boardtest.NewChip("gpiochip4", "pinctrl-rp1", named(28, map[int]string{17: "PIN11"})...)
	chip.Take(8, "spi0 CS0")
	chip.Take(25, "w1")
	root := t.TempDir()
	b := boardtest.Machine{Chips: []*boardtest.Chip{chip}, Root: root}.Board()
	if _, err := b.Output("GPIO18", board.OutputOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"sys/bus/i2c/devices/1-0076", "sys/bus/i2c/drivers/bmp280", "dev/i2c-1"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../drivers/bmp280", filepath.Join(root, "sys/bus/i2c/devices/1-0076/driver")); err != nil {
		t.Fatal(err)
	}
	line := func(pins ...board.Pin) (all []driver.Resource) {
		for _, p := range pins {
			all = append(all, p.Resource())
		}
		return all
	}
	bus := []driver.Resource{{Name: "GPIO2", Shared: "i2c-1"}, {Name: "GPIO3", Shared: "i2c-1"}}
	if err := b.Survey(map[string][]driver.Resource{
		"pump": line("GPIO17", "GPIO18"), "gone": line("gpiochip9/3", "NOWHERE"),
		"climate": append(bus, driver.Resource{Name: "i2c-1/0x77"}), "cellar": append(bus, driver.Resource{Name: "i2c-1/0x23"}),
		"display": {{Name: "spidev0.0"}, {Name: "GPIO8", Shared: "spi0"}}, "fan": {{Name: "pwmchip0/1"}}, "gps": {{Name: "/dev/serial0"}},
	}); err != nil {
		t.Errorf("nothing is wrong, and it says: %v", err)
	}
	err := b.Survey(map[string][]driver.Resource{
		"pump": line("GPIO17"), "heater": line("gpiochip4/17"), "lamp": line("PIN11"),
		"door": line("GPIO25"), "button": line("GPIO3"), // which others have: opening them says so
		"climate": append(bus, driver.Resource{Name: "i2c-1/0x76"}),
	})
	if err == nil {
		t.Fatal("nothing was found")
	}
	const want = `lamp: PIN11 is line 17 of gpiochip4, which heater (gpiochip4/17) uses too; choose another line
pump: GPIO17 is line 17 of gpiochip4, which lamp (PIN11) uses too; choose another line`
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	for _, pin := range []board.Pin{"GPIO3", "GPIO25", "GPIO18"} { // a bus's, another program's, our own
		if err := b.CheckFree(pin); device.AsFault(err).Kind != device.Busy {
			t.Errorf("%s can be had: %v", pin, err)
		}
		if _, err := b.Input(pin, board.InputOptions{}); device.AsFault(err).Kind != device.Busy {
			t.Errorf("%s is taken: %v", pin, err)
		}
	}
	if err := b.CheckFree("GPIO17"); err != nil {
		t.Error(err)
	}
	conn := b.I2C(0x76).Conn()
	if err := conn.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer conn.End()
	if err := conn.Tx(0x76, nil, make([]byte, 1)); device.AsFault(err).Kind != device.Busy {
		t.Errorf("a chip of the kernel's is read: %v", err)
	}
}

func TestModel(t *testing.T) {
	b := boardtest.Lines()
	if got := b.Model(); got != "" {
		t.Errorf("no device tree, and a model %q", got)
	}
	root := t.TempDir()
	b = board.On(board.Machine{Root: root})
	os.MkdirAll(filepath.Join(root, "proc/device-tree"), 0o700)
	os.WriteFile(filepath.Join(root, "proc/device-tree/model"), []byte("Raspberry Pi Zero W Rev 1.1\x00"), 0o600)
	if got := b.Model(); !strings.HasPrefix(got, "Raspberry Pi Zero W") || strings.Contains(got, "\x00") {
		t.Errorf("%q", got)
	}
}
