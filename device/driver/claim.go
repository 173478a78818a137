package driver

// Claim is something of the board that one device needs for itself: a line, an
// address on a bus, a serial port.
type Claim struct {
	What string // "GPIO17", "i2c-1/0x76", "spidev0.0", "pwmchip0/1", "/dev/serial0", "/sys/class/leds/ACT"
	// With is what several devices share: claims of one What do not clash when they
	// name the same With. GPIO2 is claimed by all who are on i2c-1, with "i2c-1".
	With string
}

// Claimer is a Config that knows what it needs, without hardware.
type Claimer interface{ Claims() []Claim }
