// Package scan finds the parts that are wired up, and the YAML to use them.
//
// # Care on I2C
//
// To read a register one writes its number first, and on a port expander that
// number is the level of eight pins: a careless scan closes relays. So:
//
//   - An address is tested by reading one byte, with nothing written: no SMBus
//     quick write, which writes a zero byte on some bridges (Linux's hid-mcp2221),
//     and no empty message.
//   - A byte is written only where no part of the table in parts.go can sit that
//     takes a lone byte for more than the number of a register, or where reading
//     has shown that none does. Elsewhere the scan names candidates, and the owner
//     says with --probe that it may write.
//   - An address that a device of the site has, or a kernel driver, is left alone.
//
// Reading has effects too. These are known, and move no output: a port expander
// forgets a pending interrupt (PCF8574, MCP23017); a part whose pointer stands on a
// queue loses the queue's first byte (MAX30102, SC16IS750, a GPS receiver on I2C);
// an AM2320 or ATECC608 wakes up. 0x0c is left out: a read of it is SMBus's alert
// response, which takes a part's alarm back. Buses of monitors and of a PC's main
// board are read only where the owner names them.
package scan
