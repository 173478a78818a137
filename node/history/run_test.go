package history

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// runOf opens a history and returns the number of its run. Nothing is stored.
func runOf(t *testing.T, d disk) uint32 {
	t.Helper()
	h := New(nil)
	if err := h.open(d, Options{}); err != nil {
		t.Fatal(err)
	}
	_, now := h.Marks(nil)
	return now.Run
}

// TestRunNumbers: no two runs have one number, whether they store something or not, and whenever the power fails.
func TestRunNumbers(t *testing.T) {
	d, before := newMemDisk(), uint32(0)
	for i := range uint64(50) {
		run := runOf(t, d)
		if run <= before {
			t.Fatalf("run %d comes after run %d", run, before)
		}
		files := slices.DeleteFunc(slices.Collect(maps.Keys(d.files)), func(name string) bool {
			return !strings.HasPrefix(name, runFile)
		})
		if len(files) != 1 {
			t.Fatalf("%q are kept", files)
		}
		before, d = run, d.crash(rand.New(rand.NewPCG(i, 1)))
	}
}

// TestRunNumbersWithoutDisk: on a full or read-only disk a history is opened, and two runs are told apart.
func TestRunNumbersWithoutDisk(t *testing.T) {
	d := newMemDisk()
	stored := runOf(t, d)
	d.fail = errors.New("read-only")
	runs := []uint32{runOf(t, d), runOf(t, d), runOf(t, d)} // two of them are equal once in 20,000 times, three never
	if slices.Min(runs) <= stored || slices.Min(runs) == slices.Max(runs) {
		t.Errorf("runs %d come after run %d", runs, stored)
	}
}
