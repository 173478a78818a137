package board_test

import (
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// bridged is a chip on which GPIO5 and GPIO6 are connected.
func bridged() *boardtest.Chip {
	chip := boardtest.Header()
	chip.React(func(offset int, level bool, drive func(int, bool)) {
		if offset == 5 {
			drive(6, level)
		}
	})
	return chip
}

func TestLoopBridged(t *testing.T) {
	chip := bridged()
	l, err := boardtest.Lines(chip).TestLoop("GPIO5", "GPIO6")
	if err != nil || l.Changes != 20 || l.Arrived != 20 || l.Edges != 20 {
		t.Errorf("%+v %v, want all of 20", l, err)
	}
	if chip.Driven(5) || chip.Driven(6) {
		t.Error("a line is driven after the test")
	}
}

// TestLoopOpen: the low levels arrive at a line that is pulled down, the high ones do not.
func TestLoopOpen(t *testing.T) {
	l, err := boardtest.Lines(boardtest.Header()).TestLoop("GPIO5", "GPIO6")
	if err != nil || l.Arrived != 10 || l.Edges != 0 {
		t.Errorf("%+v %v, want 10 levels and no edge", l, err)
	}
}

func TestLoopRefused(t *testing.T) {
	chip := bridged()
	chip.Take(6, "another program")
	b := boardtest.Lines(chip)
	for _, pins := range [][2]board.Pin{{"GPIO5", "GPIO6"}, {"GPIO5", "GPIO5"}, {"GPIO5", "GPIO99"}} {
		if _, err := b.TestLoop(pins[0], pins[1]); err == nil {
			t.Errorf("%v is accepted", pins)
		}
	}
	if got := chip.Changes(5); len(got) > 0 {
		t.Errorf("GPIO5 moved: %v", got)
	}
	chip.Take(6, "")
	chip.Fail(6, device.Faultf(device.Offline, "gone"))
	if _, err := b.TestLoop("GPIO5", "GPIO6"); err == nil {
		t.Error("a line that fails is accepted")
	}
}
