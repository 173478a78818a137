package modbus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLine answers as says does, and notes what it is asked.
type fakeLine struct {
	says    func(r request) ([]uint16, error)
	asked   []byte // the functions
	aborted bool
}

func (l *fakeLine) exchange(_ time.Time, _ byte, r request) ([]uint16, error) {
	l.asked = append(l.asked, r.function)
	return l.says(r)
}

func (l *fakeLine) abort() { l.aborted = true }

func silence(request) ([]uint16, error) { return nil, errSilent }

// openBus returns a bus whose line is l.
func openBus(t *testing.T, serial bool, l *fakeLine) *bus {
	b := new(buses).acquire("it", serial, func(context.Context) (line, error) { return l, nil })
	t.Cleanup(b.release)
	return b
}

func readOf(address uint16, urgent bool) call {
	return call{request{function: readInputs, address: address, count: 1}, 1, 100 * time.Millisecond, urgent}
}

// TestUrgentPauses: a request for an output goes to a unit that is silent, and to a line that could not be opened, in
// the pauses of the others.
func TestUrgentPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unit := &fakeLine{says: silence}
		silent, opens := openBus(t, true, unit), 0
		lost := new(buses).acquire("lost", true, func(context.Context) (line, error) {
			opens++
			return nil, errors.New("no adapter")
		})
		defer lost.release()
		tries := func(b *bus, urgent bool, n *int) int {
			before := *n
			if _, err := b.do(t.Context(), readOf(0, urgent)); err == nil {
				t.Error("it answers")
			}
			return *n - before
		}
		asked := func(urgent bool) int {
			before := len(unit.asked)
			tries(silent, urgent, new(int))
			return len(unit.asked) - before
		}
		for range 20 { // the pauses grow
			asked(false)
			tries(lost, false, &opens)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if a, o := asked(false), tries(lost, false, &opens); a != 0 || o != 0 {
			t.Errorf("a read asks the unit %d times, and opens the line %d times", a, o)
		}
		if a, o := asked(true), tries(lost, true, &opens); a != 1 || o != 1 {
			t.Errorf("an urgent one asks the unit %d times, and opens the line %d times", a, o)
		}
	})
}

// TestSilentWrite: a connection on which a write had no answer is closed at once, so that it does not arrive later.
func TestSilentWrite(t *testing.T) {
	l := &fakeLine{says: silence}
	b := openBus(t, false, l)
	b.do(t.Context(), readOf(0, true))
	if l.aborted {
		t.Error("one silent read ends the connection")
	}
	b.units[1].owed, b.lost = owed{}, 0
	b.do(t.Context(), call{request{function: writeCoil, count: 1, values: []uint16{1}}, 1, 100 * time.Millisecond, true})
	if !l.aborted {
		t.Error("the connection of a silent write stays open")
	}
}

// TestStrangeAnswerIsOwed: after an answer that was refused, the unit's own may still come: it is not that to another
// request of the same form.
func TestStrangeAnswerIsOwed(t *testing.T) {
	l := &fakeLine{says: func(request) ([]uint16, error) { return nil, strangeError("damaged") }}
	b := openBus(t, true, l)
	b.do(t.Context(), readOf(0, false))
	l.asked, l.says = nil, func(request) ([]uint16, error) { return []uint16{7}, nil }
	if _, err := b.do(t.Context(), readOf(50, false)); err != nil || len(l.asked) != 2 || l.asked[0] != diagnostics {
		t.Errorf("it is asked the functions %v: %v", l.asked, err)
	}
}
