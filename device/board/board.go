package board

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Board is the machine's buses and lines. It opens nothing until a device uses it,
// and is safe for concurrent use.
type Board struct {
	root  string // "/", or a test's tree of files
	chips chips  // nil for the kernel's; a test has its own
}

// New returns this machine's board.
func New() *Board { return &Board{root: "/"} }

// Model is what the board calls itself, such as "Raspberry Pi 4 Model B Rev 1.4";
// "" on a machine without a device tree. periph's own answer is not used: it finds
// a Raspberry Pi wherever the kernel has the firmware's driver.
func (b *Board) Model() string {
	text, err := os.ReadFile(filepath.Join(b.root, "proc/device-tree/model"))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\x00\n")
}

// headerLines are the lines of a Raspberry Pi's header that its buses take.
var headerLines = map[string][]string{
	"i2c-0":     {"GPIO0", "GPIO1"},
	"i2c-1":     {"GPIO2", "GPIO3"},
	"spidev0.0": {"GPIO8", "GPIO9", "GPIO10", "GPIO11"},
	"spidev0.1": {"GPIO7", "GPIO9", "GPIO10", "GPIO11"},
	"spidev1.0": {"GPIO18", "GPIO19", "GPIO20", "GPIO21"},
	"spidev1.1": {"GPIO17", "GPIO19", "GPIO20", "GPIO21"},
	"spidev1.2": {"GPIO16", "GPIO19", "GPIO20", "GPIO21"},
}

// kernelDriver is the name of the kernel driver that has the address, or "". The
// check is ours: I2C_RDWR goes through whoever has the address.
func (b *Board) kernelDriver(bus int, address uint16) string {
	link, err := os.Readlink(filepath.Join(b.root, fmt.Sprintf("sys/bus/i2c/devices/%d-%04x/driver", bus, address)))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}
