package board

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/driver"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/host/v3/sysfs"
)

// I2C is the bus and the address that a chip is wired to. A chip's Config embeds it;
// Board.I2C makes it.
type I2C struct {
	Bus     string `json:"bus" jsonschema:"the I2C bus, such as i2c-1; i2c-1/0x70:3 is channel 3 of a PCA9548 at 0x70 on it"`
	Address uint16 `json:"address" jsonschema:"the chip's address on the bus, such as 0x76"`

	board   *Board
	allowed []uint16
}

// I2C returns the place of a chip that can have these addresses, the usual one first.
// Without addresses it can have any, and the owner has to write it.
func (b *Board) I2C(addresses ...uint16) I2C {
	c := I2C{Bus: "i2c-1", board: b, allowed: addresses}
	if len(addresses) > 0 {
		c.Address = addresses[0]
	}
	return c
}

// Addresses returns the addresses that the chip can have; none where it can have any.
func (c I2C) Addresses() []uint16 { return c.allowed }

// busName matches a bus, with or without a channel of a multiplexer on it.
var busName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^i2c-([0-9]{1,4})(?:/(0x7[0-7]):([0-7]))?$`) })

// Validate finds mistakes without hardware.
func (c I2C) Validate() error {
	if !busName().MatchString(c.Bus) {
		return device.Faultf(device.Invalid, "bus: %.40q is not an I2C bus; write it like i2c-1, or like i2c-1/0x70:3 behind a PCA9548", c.Bus)
	}
	if c.Address < 0x03 || c.Address > 0x77 {
		return device.Faultf(device.Invalid, "address: %#x is not an I2C address; use 0x03 to 0x77", c.Address)
	}
	if len(c.allowed) > 0 && !slices.Contains(c.allowed, c.Address) {
		return device.Faultf(device.Invalid, "address: this chip cannot have %#x; use %s", c.Address, hexes(c.allowed))
	}
	return nil
}

// Addresses returns the addresses from first to last.
func Addresses(first, last uint16) []uint16 {
	var all []uint16
	for a := first; a <= last; a++ {
		all = append(all, a)
	}
	return all
}

func hexes(addresses []uint16) string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = fmt.Sprintf("%#02x", a)
	}
	return strings.Join(all, ", ")
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

// Resources returns the address and the bus's lines.
func (c I2C) Resources() []driver.Resource {
	m := busName().FindStringSubmatch(c.Bus)
	if m == nil {
		return nil
	}
	resources := []driver.Resource{{Name: fmt.Sprintf("%s/%#02x", c.Bus, c.Address)}}
	root := "i2c-" + m[1]
	if m[2] != "" {
		resources = append(resources, driver.Resource{Name: root + "/" + m[2], Shared: "the multiplexer"})
	}
	return append(resources, linesOf(root, root)...)
}

// OnI2C splits the resource of an address into its bus and the multiplexer on that bus
// which this program switches for it, or "".
func OnI2C(c driver.Resource) (bus, mux string, ok bool) {
	m := busName().FindStringSubmatch(path.Dir(c.Name))
	if m == nil {
		return "", "", false
	}
	return "i2c-" + m[1], m[2], true
}

func linesOf(bus, with string) []driver.Resource {
	var resources []driver.Resource
	for _, line := range headerLines[bus] {
		resources = append(resources, driver.Resource{Name: line, Shared: with})
	}
	return resources
}

// Conn returns the chip's connection to its bus. It does no I/O; where Validate finds a
// mistake, transfers fail with it.
func (c I2C) Conn() *Conn {
	m := busName().FindStringSubmatch(c.Bus)
	if m == nil {
		m = make([]string, 4)
	}
	conn := &Conn{Turn: NewTurn(), at: c, mistake: c.Validate(), shared: c.board.busNamed("i2c-" + m[1])}
	conn.number, _ = strconv.Atoi(m[1])
	if m[2] != "" {
		mux, _ := strconv.ParseUint(m[2], 0, 16)
		channel, _ := strconv.Atoi(m[3])
		conn.mux, conn.channel = uint16(mux), [1]byte{1 << channel}
	}
	return conn
}

// Conn is one chip's connection to its I2C bus, and a periph i2c.Bus. Transfers are made
// between Begin and End. They wait for the bus, and fail once the context of Begin has ended. A
// transfer that the kernel has begun ends by the bus driver's own timeout, 1 s on a Raspberry Pi.
//
// After a chip has hung, Begin first leaves the bus to others, for half of the time that the chip
// took, and for all of it while it goes on. BeginWrite does so once a write has hung, and else briefly.
type Conn struct {
	Turn
	at      I2C
	mistake error // in at
	number  int
	mux     uint16 // 0 where there is none
	channel [1]byte
	shared  *i2cBus
	bus     i2c.BusCloser // open from the first transfer to End
	pause   time.Duration // after the last transfer, of a chip that hung
	writes  bool          // from BeginWrite to End
	stuck   bool          // a write has hung, and nothing has been transferred since

	mu         sync.Mutex
	again      time.Time // when a chip that hung is asked again
	writeAgain time.Time // when it is written to again
}

// i2cBus is the lock of a bus, which is held during a transfer, and what is transferred.
type i2cBus struct {
	device.Mutex

	mu    sync.Mutex
	with  uint16 // the address; 0 for none
	since time.Time
}

// begin locks the bus for a transfer. If that lasts until ctx ends, the error names the chip that
// hangs, if there is one.
func (b *i2cBus) begin(ctx context.Context, name string, addr uint16) error {
	err := b.LockContext(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.with, b.since = addr, time.Now()
		return nil
	}
	if took := time.Since(b.since); b.with != 0 && took >= hangs && errors.Is(err, context.DeadlineExceeded) {
		return device.Faultf(device.Offline, "%s is blocked: a transfer with %#02x has taken %v so far; check that chip, or unplug it: %w", name, b.with, took.Round(100*time.Millisecond), err)
	}
	return err
}

// end unlocks the bus and returns how long the transfer took.
func (b *i2cBus) end() time.Duration {
	b.mu.Lock()
	took := time.Since(b.since)
	b.with = 0
	b.mu.Unlock()
	b.Unlock()
	return took
}

// hangs is the least duration of a transfer that counts as hung. The longest one of a display takes a
// tenth of a second.
const hangs = 500 * time.Millisecond

// brief is the wait of a write after a reading that hung. In it the outputs of other chips that wait for
// the bus are written, in several transfers each.
const brief = 100 * time.Millisecond

// Begin waits until no other call uses the chip, and until it is to be asked again.
func (c *Conn) Begin(ctx context.Context) error { return c.begin(ctx, &c.again) }

// BeginWrite is Begin before a write to an output: that waits briefly after a reading that hung.
func (c *Conn) BeginWrite(ctx context.Context) error {
	err := c.begin(ctx, &c.writeAgain)
	if err == nil {
		c.writes = true
	}
	return err
}

// begin begins a call once a time has come. A call that waits for it keeps no other from the chip.
func (c *Conn) begin(ctx context.Context, again *time.Time) error {
	left := func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		return time.Until(*again)
	}
	for {
		if pause := left(); pause > 0 {
			if err := device.Sleep(ctx, pause); err != nil {
				return err
			}
		}
		if err := c.Turn.Begin(ctx); err != nil || left() <= 0 {
			return err
		}
		c.Turn.End()
	}
}

// End closes the bus and lets the next call begin.
func (c *Conn) End() {
	if c.bus != nil {
		c.bus.Close() // nothing is buffered in it
	}
	c.bus, c.writes = nil, false
	c.Turn.End()
}

// Tx writes w, if it is not empty, and then reads r, if that is not empty, in one
// transfer. Its errors are faults with a remedy.
func (c *Conn) Tx(addr uint16, w, r []byte) error {
	if err := c.shared.begin(c.ctx, c.String(), addr); err != nil {
		return err
	}
	err := c.transfer(addr, w, r)
	took := c.shared.end()
	if err == nil || took < hangs {
		c.pause, c.stuck = 0, false
		return err
	}
	c.stuck = c.stuck || c.writes
	c.pause = min(max(took/2, 2*c.pause), took)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = time.Now().Add(c.pause)
	if c.writeAgain = c.again; !c.stuck {
		c.writeAgain = time.Now().Add(brief)
	}
	return err
}

func (c *Conn) transfer(addr uint16, w, r []byte) error {
	if err := c.open(); err != nil {
		return err
	}
	if c.mux != 0 {
		if err := c.bus.Tx(c.mux, c.channel[:], nil); err != nil {
			return c.fault(c.mux, err)
		}
	}
	return c.fault(addr, c.bus.Tx(addr, w, r))
}

func (c *Conn) open() error {
	if c.bus != nil {
		return nil
	}
	if c.mistake != nil {
		return c.mistake
	}
	if name := c.at.board.kernelDriver(c.number, c.at.Address); name != "" && c.mux == 0 {
		return device.Faultf(device.Busy, "address %#02x on i2c-%d is used by the kernel driver %s; use driver: iio or driver: hwmon, or unbind it as root: echo %d-%04x > /sys/bus/i2c/drivers/%s/unbind", c.at.Address, c.number, name, c.number, c.at.Address, name)
	}
	bus, err := c.at.board.machine.OpenI2C(c.number)
	if err != nil {
		return c.fault(c.at.Address, err)
	}
	c.bus = bus
	return nil
}

// kernelDriver returns the kernel driver that uses the address, or "". The kernel itself
// does not check: I2C_RDWR works also where a driver uses the address.
func (b *Board) kernelDriver(bus int, address uint16) string {
	link, err := os.Readlink(b.files.Path(fmt.Sprintf("sys/bus/i2c/devices/%d-%04x/driver", bus, address)))
	if err != nil {
		return ""
	}
	return filepath.Base(link)
}

// failure describes an error of the kernel on an I2C bus.
type failure struct {
	errno  syscall.Errno
	kind   device.FaultKind
	says   string // with the bus's number and the address
	absent bool   // no chip acknowledged the address
}

// failureOf returns the failure that an error of the kernel stands for, or nil.
func failureOf(err error) *failure {
	for i, f := range failures {
		if err != nil && (errors.Is(err, f.errno) || strings.HasSuffix(err.Error(), f.errno.Error())) {
			return &failures[i]
		}
	}
	return nil
}

func (c *Conn) fault(addr uint16, err error) error {
	var fault *device.Fault
	if err == nil || errors.As(err, &fault) {
		return err
	}
	if e := failureOf(err); e != nil {
		f := device.Faultf(e.kind, e.says, c.number, addr)
		f.Err = err
		return f
	}
	return device.Faultf(device.Offline, "the transfer with %#02x on i2c-%d failed: %w", addr, c.number, err)
}

// String is the bus's name, for messages.
func (c *Conn) String() string { return c.at.Bus }

// SetSpeed is refused: the speed belongs to all chips on the bus and is set in the
// board's own configuration.
func (c *Conn) SetSpeed(physic.Frequency) error {
	return device.Faultf(device.Invalid, "the speed of %s is set in the board's configuration, such as dtparam=i2c_arm_baudrate", c.at.Bus)
}

// Fixed returns bus with every transfer going to address, for a periph driver that takes
// only some of the addresses that its chip can have.
func Fixed(bus i2c.Bus, address uint16) i2c.Bus { return fixed{bus, address} }

type fixed struct {
	i2c.Bus
	address uint16
}

func (f fixed) Tx(_ uint16, w, r []byte) error { return f.Bus.Tx(f.address, w, r) }

func openI2C(bus int) (i2c.BusCloser, error) {
	b, err := sysfs.NewI2C(bus)
	if err != nil {
		return nil, err // a nil *sysfs.I2C would be a bus
	}
	return b, nil
}
