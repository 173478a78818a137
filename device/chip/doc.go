// Package chip has the drivers of chips on I2C, SPI and lines of the board, and of parts on a
// serial port. It uses periph.io/x/devices where that has a sound driver. Each driver is a file,
// with the datasheet's ranges and timings, and a line in the list of Drivers. The camera is here
// too: it is wired to the board, behind a program of its maker.
//
// A chip gets its bus or its lines from device/board, and keeps no bus open. Parts with a kernel
// driver are in device/kernel. The package knows no guard, person or protocol.
package chip
