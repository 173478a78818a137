// Package gpio has the drivers on bare lines of the board: outputs that are switched or
// pulsed, inputs that are read or watched, and sensors that need no bus. Lines come from
// device/board, are requested when they are first needed, and again after their chip was
// unplugged.
package gpio
