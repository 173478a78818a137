package history

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
)

// TestRemovedFolder: the history writes on when its folder was removed.
func TestRemovedFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "history")
		points := map[string]device.Point{"a/t": {Name: "t", Kind: device.KindMeasurement, Unit: "Cel"}}
		h := New(points)
		if err := h.Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		minute := func() error {
			time.Sleep(time.Minute)
			h.Record(device.Reading{Point: "a/t", Value: device.Number(1), Quality: device.Good, At: time.Now()})
			return h.flush(false)
		}
		if err := minute(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := minute(); err != nil {
			t.Error(err)
		}
		if all, err := os.ReadDir(path); len(all) == 0 {
			t.Error("nothing is written", err)
		}
	})
}
