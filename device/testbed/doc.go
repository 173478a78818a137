// Package testbed is the parts of an emulated board: chips, register by register as
// their datasheets have them, the I2C bus that they are on, and the USB bridge that
// carries the bus into a Linux kernel. Its folder guest is the program that turns an
// emulated machine into such a board.
//
// A chip measures what it is told of the world, and an observer can see what it
// does at its outputs. It knows no driver and is told nothing of who asks: what a
// driver does wrong has to show.
package testbed
