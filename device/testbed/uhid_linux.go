package testbed

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Constants of user-space HID (include/uapi/linux/uhid.h).
const (
	uhidOutput  = 6
	uhidCreate2 = 11
	uhidInput2  = 12

	uhidCreateSize = 4 + 128 + 64 + 64 + 2 + 2 + 4*4 + 4096
	uhidEventSize  = 4 + 4096 + 2 + 1
)

// mcpDescriptor describes vendor-defined reports of 64 bytes in both directions.
var mcpDescriptor = []byte{
	0x06, 0x00, 0xff, 0x09, 0x01, 0xa1, 0x01,
	0x09, 0x01, 0x15, 0x00, 0x26, 0xff, 0x00, 0x75, 0x08, 0x95, ReportSize, 0x81, 0x02,
	0x09, 0x01, 0x15, 0x00, 0x26, 0xff, 0x00, 0x75, 0x08, 0x95, ReportSize, 0x91, 0x02,
	0xc0,
}

// Plug connects the bridge to this machine's kernel, as a USB device by /dev/uhid, until
// it is closed. The kernel's driver hid-mcp2221 then creates an I2C bus, asynchronously.
// A bridge can be plugged in only once.
func (m *MCP2221) Plug() (io.Closer, error) {
	f, err := os.OpenFile("/dev/uhid", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	create := make([]byte, uhidCreateSize)
	binary.NativeEndian.PutUint32(create, uhidCreate2)
	copy(create[4:], "emulated MCP2221") // name, and two more texts
	ids := create[4+128+64+64:]
	binary.NativeEndian.PutUint16(ids, uint16(len(mcpDescriptor)))
	binary.NativeEndian.PutUint16(ids[2:], 3) // USB
	binary.NativeEndian.PutUint32(ids[4:], 0x04d8)
	binary.NativeEndian.PutUint32(ids[8:], 0x00dd)
	copy(ids[20:], mcpDescriptor)
	if _, err := f.Write(create); err != nil {
		f.Close()
		return nil, err
	}
	go m.serve(f)
	return plugged{m, f}, nil
}

type plugged struct {
	bridge *MCP2221
	f      *os.File
}

// Close unplugs the bridge. Linux notices at once when a real bridge is unplugged. For an
// emulated one it waits 4 s for each response, because it handles no responses while it
// removes the device. So first the chips stop acknowledging, and their drivers unbind.
func (p plugged) Close() error {
	p.bridge.unplugged.Store(true)
	drivers, err := filepath.Glob("/sys/bus/hid/drivers/mcp2221/0003:04D8:00DD.*/i2c-*/*-*/driver")
	for _, driver := range drivers {
		chip := filepath.Base(filepath.Dir(driver))
		err = errors.Join(err, os.WriteFile(filepath.Join(driver, "unbind"), []byte(chip), 0))
	}
	return errors.Join(err, p.f.Close())
}

// serve answers reports until f is closed.
func (m *MCP2221) serve(f *os.File) {
	event, input := make([]byte, uhidEventSize), make([]byte, 4+2+ReportSize)
	binary.NativeEndian.PutUint32(input, uhidInput2)
	binary.NativeEndian.PutUint16(input[4:], ReportSize)
	for {
		n, err := f.Read(event)
		if err != nil {
			return
		}
		if n < 4+ReportSize || binary.NativeEndian.Uint32(event) != uhidOutput {
			continue
		}
		answer := m.Answer(event[4 : 4+ReportSize])
		if m.hung {
			continue
		}
		copy(input[6:], answer[:])
		if _, err := f.Write(input); err != nil {
			return
		}
	}
}
