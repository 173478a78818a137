// Package gpio has the drivers on bare lines of the board: switched or pulsed outputs, inputs that
// are read or watched, and sensors without a bus. Lines come from device/board, are requested when
// they are first needed, and again after their chip was unplugged.
package gpio
