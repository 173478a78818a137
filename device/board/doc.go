// Package board is the buses and lines of this board: who may have which, and how
// a driver gets to one. Chips know their registers and get a bus from here; they
// never open or close one themselves.
//
// Nothing is held open between two uses of a bus, so that an adapter on USB can be
// unplugged and plugged in again at any time.
//
// Kernel drivers (device/kernel) and chips (device/chip) may not enter.
package board
