package gpio

import (
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// BenchmarkSwitch is a relay's Apply beside the bare write of its line, on the same
// fake. Apply reads the line back, which the bare write does not.
func BenchmarkSwitch(b *testing.B) {
	b.Run("line", func(b *testing.B) {
		line, err := boardtest.Lines(boardtest.Header()).Output("GPIO17", board.OutputOptions{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			line.Set(i&1 != 0)
		}
	})
	b.Run("apply", func(b *testing.B) {
		dev, err := configured(boardtest.Lines(boardtest.Header()))["relay"].Open(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer dev.Close()
		relay := dev.(device.Actuator)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := relay.Apply(b.Context(), "relay", device.Bool(i&1 != 0)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
