// Package pinout draws a board's 40-pin header with the devices that are wired to it. It may
// import device/board, for the header's positions.
package pinout

import "agentsite/device/board"

// Pinout is the board's header with the devices of a configuration at its positions.
type Pinout struct {
	Site      string           `json:"site,omitzero"` // "" without a configuration
	Board     string           `json:"board"`
	Positions []board.Position `json:"positions"`
	Elsewhere []string         `json:"elsewhere,omitzero"` // devices that have no position there
}

// Label is the short name of a position, such as "GPIO2 SDA".
func Label(pos board.Position) string {
	switch {
	case pos.Line == "":
		return pos.Kind
	case pos.Signal != "":
		return string(pos.Line) + " " + pos.Signal
	case pos.Kind != board.GPIOLine:
		return string(pos.Line) + " " + pos.Kind
	}
	return string(pos.Line)
}
