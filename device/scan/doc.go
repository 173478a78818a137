// Package scan finds connected parts, and the YAML to use them.
//
// # Safety on I2C
//
// Reading a register starts with writing its number. A port expander takes that byte as the
// level of eight pins, so that a careless scan closes relays. Therefore:
//
//   - An address is tested by reading one byte. Nothing is written: no SMBus quick write,
//     which writes a zero byte on some bridges (Linux's hid-mcp2221), and no empty message.
//   - A byte is written only if every part in parts.go that can have the address takes a
//     single byte as a register's number, or if reading has excluded the others. Elsewhere
//     the scan lists candidates, and --probe permits writing.
//   - Addresses used by the site's devices or by kernel drivers are skipped.
//
// Reading has known effects, none of which moves an output. A port expander clears a pending
// interrupt (PCF8574, MCP23017). A part whose pointer is on a queue loses the queue's first byte
// (MAX30102, SC16IS750, a GPS receiver on I2C). An AM2320 or ATECC608 wakes up. 0x0c is skipped,
// because reading it is an SMBus alert response, which clears a part's alert. Buses of displays and
// of a PC's main board are scanned only if the caller names them.
package scan
