// Package testbed emulates the parts of a board: chips, register by register after their
// datasheets, their I2C bus, and the bus's USB bridge to a Linux kernel. Its folder guest is the
// program that turns an emulated machine into such a board.
//
// A test sets what a chip measures and inspects its outputs. The chips share no code with
// the drivers, so that an error of a driver shows.
package testbed
