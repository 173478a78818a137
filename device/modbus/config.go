package modbus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

// config is the YAML of one unit, at a host or on a serial port.
type config struct {
	Address  string                  `json:"address,omitempty" jsonschema:"the host of Modbus TCP: 192.168.1.20, or meter.local:1502 for another port than 502"`
	Port     string                  `json:"port,omitempty" jsonschema:"or the serial port of Modbus RTU: /dev/ttyUSB0 or, so that it stays the same, a name below /dev/serial/by-id"`
	Baud     int                     `json:"baud,omitempty" jsonschema:"of the serial port; 9600 when not written"`
	Parity   string                  `json:"parity,omitempty" jsonschema:"of the serial port: none, even or odd; none when not written"`
	Stop     int                     `json:"stop,omitempty" jsonschema:"the stop bits of the serial port: 1 or 2; 1 when not written"`
	UnitID   int                     `json:"unit_id,omitempty" jsonschema:"the unit's address on the line (slave id), 1 to 247; with TCP often 1, and 0 to 255 are possible; 1 when not written"`
	Map      string                  `json:"map,omitempty" jsonschema:"the registers of a known device, such as eastron-sdm630; agentsite drivers modbus lists them"`
	Inputs   map[string]inputConfig  `json:"inputs,omitempty" jsonschema:"what is read, each with a name of yours"`
	Outputs  map[string]outputConfig `json:"outputs,omitempty" jsonschema:"what is written, each with a name of yours"`
	ID       []idConfig              `json:"id,omitempty" jsonschema:"registers that say which device this is, checked before anything else is read or written"`
	Watchdog *watchdogConfig         `json:"watchdog,omitempty" jsonschema:"a register that the device needs written again and again, or it goes to its own safe state; written while an output is away from safe"`
	Gap      int                     `json:"gap,omitempty" jsonschema:"how many registers that nobody needs may be read along, so that one request reads more points; 0 when not written, at most 32"`
	Block    int                     `json:"block,omitempty" jsonschema:"how many registers one request may read, at most 125; 50 when not written"`
	Timeout  time.Duration           `json:"timeout,omitempty" jsonschema:"how long an answer may take, 50ms to 900ms; 500ms when not written"`

	board *board.Board
	buses *buses
}

type inputConfig struct {
	Place
	Use string `json:"use,omitempty" jsonschema:"or the name of an entry of the map, whose place and type it has"`
	Format
	Bit      *int    `json:"bit,omitempty" jsonschema:"of a state in a register: which bit, 0 is the lowest"`
	Unknown  *uint64 `json:"unknown,omitempty" jsonschema:"the number, as it is in the registers, that stands for not known, such as 0x8000"`
	Exponent *Place  `json:"exponent,omitempty" jsonschema:"a register with the power of ten that the number is multiplied by (SunSpec's scale factor)"`
	driver.InputPoint
}

type outputConfig struct {
	Place
	Use string `json:"use,omitempty" jsonschema:"or the name of an entry of the map, whose place and type it has"`
	Format
	On       *uint16 `json:"value_on,omitempty" jsonschema:"of a switch at a holding register: what means on; 1 when not written"`
	Off      *uint16 `json:"value_off,omitempty" jsonschema:"of a switch at a holding register: what means off; 0 when not written"`
	ReadBack *Place  `json:"read_back,omitempty" jsonschema:"where the device says what it was set to, if not at the same place"`
	Multiple bool    `json:"multiple,omitempty" jsonschema:"on for a device that is written by the functions 15 and 16 only, not by 5 and 6"`
	driver.OutputPoint
}

type idConfig struct {
	Place
	Format
	Is []uint64 `json:"is" jsonschema:"the numbers that it can be, such as [101, 103]"`
}

type watchdogConfig struct {
	Place
	Value uint16        `json:"value" jsonschema:"what is written"`
	Every time.Duration `json:"every,omitempty" jsonschema:"how often, 1s to 1m; 1s when not written"`
}

// The bounds of the keys.
const (
	maxPoints    = 100
	maxGap       = 32
	maxBlock     = 125
	minTimeout   = 50 * time.Millisecond
	maxTimeout   = 900 * time.Millisecond // a write and its read-back fit into the guard's two seconds
	defaultBlock = 50
)

// Drivers returns the drivers of this package; the serial ports are the board's.
func Drivers(b *board.Board) []driver.Driver {
	all := &buses{}
	return []driver.Driver{{
		Name:  "modbus",
		Doc:   "a meter, inverter, pump, relay board or converter with Modbus, by TCP or on RS-485",
		Also:  "modbus-tcp modbus-rtu rs485 sunspec " + strings.Join(mapParts(), " "),
		Part:  mapOf,
		Entry: "{ driver: modbus, address: 192.168.1.20, map: sunspec-inverter }",
		Note:  mapNote(),
		Lacks: map[string]string{
			"slave": "write unit_id", "slave_id": "write unit_id", "host": "write address",
			"device": "write port for a serial port, or address for a host",
		},
		Config: func() driver.Config { return &config{UnitID: 1, board: b, buses: all} },
	}}
}

func (c *config) baud() int              { return cmp.Or(c.Baud, 9600) }
func (c *config) block() int             { return cmp.Or(c.Block, defaultBlock) }
func (c *config) timeout() time.Duration { return cmp.Or(c.Timeout, 500*time.Millisecond) }

// Peer returns the unit.
func (c *config) Peer() string {
	return fmt.Sprintf("unit %d at %s", c.UnitID, cmp.Or(c.Address, c.Port))
}

func (c *config) unitID() byte { return byte(c.UnitID) }

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)
})

// host returns the host and port to connect to.
func (c *config) host() (string, error) {
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		host, port = strings.Trim(c.Address, "[]"), "502"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || net.ParseIP(host) == nil && !hostName().MatchString(host) {
		return "", device.Faultf(device.Invalid,
			"address: %.60q is not a host; write it like 192.168.1.20, meter.local or 192.168.1.20:1502", c.Address)
	}
	return net.JoinHostPort(host, port), nil
}

func (c *config) serialPort() board.Serial {
	s := c.board.Serial()
	s.Port = c.Port
	return s
}

func (c *config) mode() board.SerialMode {
	return board.SerialMode{Baud: c.baud(), Even: c.Parity == "even", Odd: c.Parity == "odd", TwoStops: c.Stop == 2}
}

// Validate finds mistakes without hardware.
func (c *config) Validate() error {
	if err := c.validateLine(); err != nil {
		return err
	}
	switch {
	case c.Gap < 0 || c.Gap > maxGap:
		return device.Faultf(device.Invalid, "gap: %d is not 0 to %d", c.Gap, maxGap)
	case c.Block < 0 || c.Block > maxBlock:
		return device.Faultf(device.Invalid, "block: %d is not 1 to %d", c.Block, maxBlock)
	case c.Timeout != 0 && (c.Timeout < minTimeout || c.Timeout > maxTimeout):
		return device.Faultf(device.Invalid, "timeout: %v is not %v to %v", c.Timeout, minTimeout, maxTimeout)
	}
	l, err := c.layout()
	if err != nil {
		return err
	}
	return l.description.Validate()
}

func (c *config) validateLine() error {
	switch {
	case (c.Address == "") == (c.Port == ""):
		return device.Faultf(device.Invalid,
			"address: write either address, the host of Modbus TCP, or port, a serial port")
	case c.Address != "":
		switch {
		case c.Baud != 0 || c.Parity != "" || c.Stop != 0:
			return device.Faultf(device.Invalid,
				"address: baud, parity and stop are those of a serial port; remove them")
		case c.UnitID < 0 || c.UnitID > 255:
			return device.Faultf(device.Invalid, "unit_id: %d is not 0 to 255", c.UnitID)
		}
		_, err := c.host()
		return err
	case c.UnitID < 1 || c.UnitID > 247:
		return device.Faultf(device.Invalid,
			"unit_id: %d is not 1 to 247; 0 is all units together, which confirm nothing", c.UnitID)
	case !slices.Contains([]string{"", "none", "even", "odd"}, c.Parity):
		return device.Faultf(device.Invalid, "parity: %.20q is unknown; use none, even or odd", c.Parity)
	case c.Stop < 0 || c.Stop > 2:
		return device.Faultf(device.Invalid, "stop: %d is not 1 or 2", c.Stop)
	}
	if err := board.CheckBaud(c.baud()); err != nil {
		return err
	}
	return c.serialPort().Validate()
}

// bus returns the name of the port or host.
func (c *config) bus() string {
	if c.Port != "" {
		return c.Port
	}
	host, _ := c.host()
	return host
}

// Resources returns the port with its settings, or the host, and each place that is written. One process has all
// units of a port, and of a host, because many accept one connection only.
func (c *config) Resources() []driver.Resource {
	if c.validateLine() != nil {
		return nil
	}
	all := []driver.Resource{{Name: c.bus(), Shared: "Modbus TCP", OneProcess: true, Elsewhere: true}}
	if c.Port != "" {
		all = c.serialPort().Resources()
		all[0].Shared, all[0].OneProcess = "Modbus at "+c.lineText(), true
	}
	l, err := c.layout()
	if err != nil {
		return all
	}
	for _, p := range l.points {
		if p.output {
			place := c.bus() + " unit " + strconv.Itoa(c.UnitID) + " " + p.at.String()
			all = append(all, driver.Resource{Name: place, Elsewhere: true})
		}
	}
	return all
}

// lineText is a port's settings as they are usually written: 9600 8N1.
func (c *config) lineText() string {
	parity := map[string]string{"even": "E", "odd": "O"}[c.Parity]
	return strconv.Itoa(c.baud()) + " 8" + cmp.Or(parity, "N") + strconv.Itoa(cmp.Or(c.Stop, 1))
}

// Describe returns the points without hardware.
func (c *config) Describe() device.Description {
	l, err := c.layout()
	if err != nil {
		return device.Description{}
	}
	return l.description
}

// Open connects, checks id, and reads once.
func (c *config) Open(ctx context.Context) (device.Device, error) {
	l, err := c.layout()
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (line, error) {
		host, err := c.host()
		if err != nil {
			return nil, err
		}
		conn, err := lan.Dial(ctx, host)
		if err != nil {
			return nil, err
		}
		return &tcpLine{conn: conn}, nil
	}
	if c.Port != "" {
		open = func(context.Context) (line, error) {
			port, err := c.serialPort().Open(c.mode())
			if err != nil {
				return nil, err
			}
			return newRTULine(port, c.baud()), nil
		}
	}
	d := newUnitDevice(l, c.unitID(), c.timeout(), c.buses.acquire(c.bus(), c.Port != "", open))
	if err := d.probe(ctx); err != nil {
		d.bus.release()
		return nil, err
	}
	return d, nil
}

// sortedNames returns the names of a map's entries in their order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
