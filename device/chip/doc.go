// Package chip is the drivers of chips on I2C and SPI and lines of the board, through
// periph.io/x/devices where that has a sound one, and of parts on a serial port: a file
// each, with the datasheet's ranges and timings, and a line in the list of Drivers. The
// camera is here too: it is wired to the board, behind a program of its maker.
//
// A chip gets its bus or its lines from device/board, and keeps no bus open. What
// Linux drives is in device/kernel. Guards, people and protocols may not enter.
package chip
