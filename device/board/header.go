package board

import (
	"slices"
	"strconv"
	"strings"

	"agentsite/device/driver"
)

// Kinds of positions of the header.
const (
	ThreeVolts = "3.3 V"
	FiveVolts  = "5 V"
	Ground     = "ground"
	I2CLine    = "I2C"
	SPILine    = "SPI"
	UARTLine   = "serial"
	OneWire    = "1-Wire"
	IDLine     = "HAT ID" // of boards that sit on this one; best left alone
	GPIOLine   = "GPIO"
)

// Position is one position of the 40-pin header.
type Position struct {
	Number  int      `json:"position"`        // 1 to 40; the odd ones are on one side
	Kind    string   `json:"kind"`            // one of the constants above
	Line    Pin      `json:"line,omitzero"`   // "GPIO17"; "" for power and ground
	Signal  string   `json:"signal,omitzero"` // on its bus: "SDA"
	Devices []string `json:"devices,omitzero"`
}

// signals are the functions of the header's lines besides GPIO, where their bus is on.
var signals = map[string]struct{ kind, signal string }{
	"GPIO0": {IDLine, "ID SD"}, "GPIO1": {IDLine, "ID SC"},
	"GPIO2": {I2CLine, "SDA"}, "GPIO3": {I2CLine, "SCL"},
	"GPIO14": {UARTLine, "TX"}, "GPIO15": {UARTLine, "RX"},
	"GPIO10": {SPILine, "MOSI"}, "GPIO9": {SPILine, "MISO"}, "GPIO11": {SPILine, "SCLK"},
	"GPIO8": {SPILine, "CE0"}, "GPIO7": {SPILine, "CE1"},
}

// OneWireResource stands for the line that the kernel uses for 1-Wire, whichever it is.
var OneWireResource = driver.Resource{Name: "/1-wire"}

// Header returns the positions of the 40-pin header of a Raspberry Pi with the devices at
// them. Devices without a position there are in elsewhere.
func (b *Board) Header(uses []Use) (all []Position, elsewhere []string) {
	w1 := Pin("GPIO" + b.oneWire())
	for i, what := range header {
		p := Position{Number: i + 1}
		switch what {
		case "3.3V":
			p.Kind = ThreeVolts
		case "5V":
			p.Kind = FiveVolts
		case "ground":
			p.Kind = Ground
		default:
			p.Line, p.Kind = Pin("GPIO"+what), GPIOLine
			if s, ok := signals[string(p.Line)]; ok {
				p.Kind, p.Signal = s.kind, s.signal
			} else if p.Line == w1 {
				p.Kind = OneWire
			}
		}
		all = append(all, p)
	}
	chips, _ := b.machine.GPIO.Chips() // without them a number is a number all the same
	for _, u := range uses {
		placed := false
		for _, pin := range pinsOf(u, w1) {
			n, onIt := onHeader(chips, pin)
			if !onIt {
				continue
			}
			placed = true
			i := slices.Index(header, strconv.Itoa(n))
			if !slices.Contains(all[i].Devices, u.Device) {
				all[i].Devices = append(all[i].Devices, u.Device)
			}
		}
		if !placed {
			elsewhere = append(elsewhere, u.Device)
		}
	}
	return all, elsewhere
}

// pinsOf returns the lines that a device uses, also those of the header's buses.
func pinsOf(u Use, w1 Pin) (all []Pin) {
	for _, c := range u.Resources {
		if c == OneWireResource {
			all = append(all, w1)
			continue
		}
		if pin, ok := resourceLine(c); ok {
			all = append(all, pin)
		}
		bus, _, _ := strings.Cut(c.Name, "/")
		for _, line := range headerLines[bus] {
			all = append(all, Pin(line))
		}
	}
	return all
}
