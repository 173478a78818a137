package board

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// Serial is the port of a part that sends by itself. Its Config embeds it; Board.Serial
// makes it.
type Serial struct {
	Port string `json:"port" jsonschema:"the serial port: /dev/serial0 on the header, /dev/ttyUSB0 or, so that it stays the same, a name below /dev/serial/by-id"`

	board *Board
}

// SerialPort is an open port: a file, or one end of a net.Pipe.
type SerialPort interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// SerialMode has the speed and the framing of a port's bytes, of eight bits each.
type SerialMode struct {
	Baud     int
	Even     bool // a parity bit; at most one of both
	Odd      bool
	TwoStops bool // two stop bits instead of one
}

// Serial returns the header's port.
func (b *Board) Serial() Serial { return Serial{Port: "/dev/serial0", board: b} }

var serialName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/dev/[A-Za-z0-9._:+@-]+(?:/[A-Za-z0-9._:+@-]+)*$`) })

// Validate finds mistakes without hardware.
func (c Serial) Validate() error {
	if !serialName().MatchString(c.Port) || path.Clean(c.Port) != c.Port {
		return device.Faultf(device.Invalid, "port: %.60q is not a serial port; write it like /dev/serial0 or /dev/ttyUSB0", c.Port)
	}
	return nil
}

// headerPorts are the names of the port on a Raspberry Pi's header.
var headerPorts = []string{"/dev/serial0", "/dev/ttyAMA0", "/dev/ttyS0"}

// Resources returns the port, and its lines where it is on the header.
func (c Serial) Resources() []driver.Resource {
	resources := []driver.Resource{{Name: c.Port}}
	if slices.Contains(headerPorts, c.Port) {
		with := strings.TrimPrefix(c.Port, "/dev/")
		resources = append(resources, driver.Resource{Name: "GPIO14", Shared: with}, driver.Resource{Name: "GPIO15", Shared: with})
	}
	return resources
}

// bauds are the rates that a port can be set to.
var bauds = []int{1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200}

// CheckBaud refuses a rate that a port cannot be set to.
func CheckBaud(baud int) error {
	if !slices.Contains(bauds, baud) {
		return device.Faultf(device.Invalid, "baud: %d is not supported; use one of %v", baud, bauds)
	}
	return nil
}

// Conn returns a connection that reads from the port. It does no I/O.
func (c Serial) Conn(baud int) (*SerialConn, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := CheckBaud(baud); err != nil {
		return nil, err
	}
	return &SerialConn{Turn: NewTurn(), at: c, baud: baud}, nil
}

// Open opens the port for the caller alone.
func (c Serial) Open(mode SerialMode) (SerialPort, error) {
	port, err := c.board.machine.OpenSerial(c.Port, mode)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, device.Faultf(device.Offline,
			"there is no %s; plug its adapter in, or on a Raspberry Pi write enable_uart=1 in config.txt: %w", c.Port, err)
	case errors.Is(err, os.ErrPermission):
		return nil, device.Faultf(device.Denied,
			"%s cannot be opened without permission; add the user to the group dialout and start again: %w", c.Port, err)
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EWOULDBLOCK):
		return nil, device.Faultf(device.Busy, "another program uses %s; stop it, or wire the part to another port: %w",
			c.Port, err)
	case err != nil:
		return nil, device.Faultf(device.Offline, "%s cannot be used: %w; check that it is a serial port", c.Port, err)
	}
	return port, nil
}

// SerialConn is one part's serial port, eight bits, no parity, raw. It is read
// between Begin and End, and locked meanwhile.
type SerialConn struct {
	Turn
	at   Serial
	baud int
	port SerialPort  // open from Ready or the first Read to End
	stop func() bool // of the watch on the context of Begin
}

// End closes the port and lets the next call begin.
func (c *SerialConn) End() {
	if c.port != nil {
		c.stop()
		c.port.Close() // nothing was written to it
	}
	c.port = nil
	c.Turn.End()
}

// Ready opens the port and reads nothing, to check that there is one.
func (c *SerialConn) Ready() error {
	if err := c.ctx.Err(); err != nil || c.port != nil {
		return err
	}
	port, err := c.at.Open(SerialMode{Baud: c.baud})
	if err != nil {
		return err
	}
	c.port = port
	c.stop = context.AfterFunc(c.ctx, func() { port.SetReadDeadline(time.Unix(1, 0)) })
	return nil
}

// Read reads the received bytes, and waits for some until the context of Begin ends. It begins with
// bytes received after the port was opened.
func (c *SerialConn) Read(p []byte) (int, error) {
	if err := c.Ready(); err != nil {
		return 0, err
	}
	n, err := c.port.Read(p)
	switch {
	case n > 0 || err == nil:
		return n, nil
	case c.ctx.Err() != nil:
		return 0, c.ctx.Err()
	}
	return 0, device.Faultf(device.Offline, "%s is disconnected; plug its adapter in again: %w", c.at.Port, err)
}

// String is the port's name, for messages.
func (c *SerialConn) String() string { return c.at.Port }
