package history

import (
	"testing"
	"time"

	"agentsite/device"
)

// TestBytes: nothing is stored in memory, and a start finds as much as was written.
func TestBytes(t *testing.T) {
	dir := t.TempDir()
	h := New(map[string]device.Point{"a/b": {Kind: device.KindMeasurement}})
	if n := h.Bytes(); n != 0 {
		t.Errorf("%d bytes in memory", n)
	}
	if err := h.Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		h.Record(device.Reading{Point: "a/b", Value: device.Number(float64(i)), Quality: device.Good, At: time.Now()})
	}
	if err := h.flush(true); err != nil {
		t.Fatal(err)
	}
	size := h.Bytes()
	again := New(nil)
	if err := again.Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if got := again.Bytes(); size == 0 || got != size {
		t.Errorf("%d bytes, and %d after a start", size, got)
	}
}
