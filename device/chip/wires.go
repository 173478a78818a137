package chip

import (
	"strings"

	"agentsite/device/board"
)

// wires is the link to a chip on bare lines of the board. The lines stay requested between uses,
// because a chip may read a floating line as a command. They are released after an error and at
// Close.
type wires struct {
	board.Turn
	board *board.Board
	name  string
	held  []*board.Line
}

func newWires(b *board.Board, pins ...board.Pin) *wires {
	names := make([]string, len(pins))
	for i, p := range pins {
		names[i] = string(p)
	}
	return &wires{Turn: board.NewTurn(), board: b, name: strings.Join(names, " and ")}
}

// String names the lines, for messages.
func (w *wires) String() string { return w.name }

func (w *wires) output(pin board.Pin, o board.OutputOptions) (*board.Line, error) {
	line, err := w.board.Output(pin, o)
	return w.hold(line, err)
}

func (w *wires) input(pin board.Pin, i board.InputOptions) (*board.Line, error) {
	line, err := w.board.Input(pin, i)
	return w.hold(line, err)
}

func (w *wires) hold(line *board.Line, err error) (*board.Line, error) {
	if err == nil {
		w.held = append(w.held, line)
	}
	return line, err
}

// release releases the lines, outputs at their safe level.
func (w *wires) release() {
	for _, line := range w.held {
		line.Close() // its error is the same as that of a transfer
	}
	w.held = nil
}
