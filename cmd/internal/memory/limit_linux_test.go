package memory

import "testing"

func TestLimit(t *testing.T) {
	const maximum = 160 << 20
	for machine, want := range map[uint64]int64{
		256 << 20: 48 << 20, 512 << 20: 64 << 20, 1 << 30: 128 << 20, 24 << 30: maximum,
	} {
		if got := limit(machine, maximum); got != want {
			t.Errorf("with %d MB the limit is %d MB, not %d", machine>>20, got>>20, want>>20)
		}
	}
}
