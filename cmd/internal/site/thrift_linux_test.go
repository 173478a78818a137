package site

import "testing"

func TestMemoryFor(t *testing.T) {
	for machine, want := range map[uint64]int64{
		256 << 20: 48 << 20, 512 << 20: 64 << 20, 1 << 30: 128 << 20, 24 << 30: mostMemory,
	} {
		if got := memoryFor(machine, mostMemory); got != want {
			t.Errorf("of %d MB it takes %d MB, not %d", machine>>20, got>>20, want>>20)
		}
	}
}
