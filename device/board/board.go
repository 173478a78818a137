package board

import (
	"cmp"
	"sync"

	"agentsite/device"
	"agentsite/device/sysfs"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/spi"
)

// Machine is how a Board reaches the hardware. A field that is not set stands for the
// machine that this program runs on.
type Machine struct {
	Root       string // the folder with boot, dev, proc and sys in it
	OpenI2C    func(bus int) (i2c.BusCloser, error)
	OpenSPI    func(port, chipSelect int) (spi.PortCloser, error)
	OpenSerial func(port string, mode SerialMode) (SerialPort, error)
	GPIO       GPIO
}

// Board is the machine's buses and lines. It opens nothing until a device uses it,
// and is safe for concurrent use.
type Board struct {
	machine Machine
	files   sysfs.Root

	mu      sync.Mutex
	buses   map[string]*i2cBus // by name
	pulsers map[string]*pulser // by chip
}

// New returns the board of the machine that this program runs on.
func New() *Board { return On(Machine{}) }

// On returns the board of a machine.
func On(m Machine) *Board {
	m.Root = cmp.Or(m.Root, "/")
	if m.OpenI2C == nil {
		m.OpenI2C = openI2C
	}
	if m.OpenSPI == nil {
		m.OpenSPI = openSPI
	}
	if m.OpenSerial == nil {
		m.OpenSerial = openSerial
	}
	if m.GPIO == nil {
		m.GPIO = kernelGPIO(m.Root)
	}
	return &Board{machine: m, files: sysfs.Root(m.Root), buses: make(map[string]*i2cBus),
		pulsers: make(map[string]*pulser)}
}

// Model returns the board's name, such as "Raspberry Pi 4 Model B Rev 1.4"; "" on a
// machine without a device tree. periph's own answer is not used: it finds
// a Raspberry Pi wherever the kernel has the firmware's driver.
func (b *Board) Model() string {
	return b.files.Text("proc/device-tree/model")
}

// busNamed returns the lock of a bus.
func (b *Board) busNamed(name string) *i2cBus {
	b.mu.Lock()
	defer b.mu.Unlock()
	bus, ok := b.buses[name]
	if !ok {
		bus = &i2cBus{Mutex: device.NewMutex()}
		b.buses[name] = bus
	}
	return bus
}
