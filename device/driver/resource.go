package driver

// Resource is a part of the board that one device needs for itself: a line, an address on
// a bus, a serial port.
type Resource struct {
	Name string // "GPIO17", "i2c-1/0x76", "spidev0.0", "pwmchip0/1", "/dev/serial0", "/sys/class/leds/ACT"
	// Shared names the part that several devices share: resources of one Name do not conflict if
	// they have the same Shared. All devices on i2c-1 need GPIO2, with Shared "i2c-1".
	Shared string
	// OneProcess is set for a shared part that only one process can open: a serial port, or a connection
	// of which the other side allows few. Where one of its devices has outputs, the guard's process has all.
	OneProcess bool
	Elsewhere  bool // it is no part of this board: a topic of a broker, a Bluetooth address
}

// ResourceUser is a Config that lists the resources its device needs, without hardware.
type ResourceUser interface{ Resources() []Resource }
