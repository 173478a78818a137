package chip

import (
	"testing"

	"agentsite/device/board/boardtest"
	"agentsite/device/driver"
)

// onLines is the driver's Config of type C on a board with this chip of lines, made
// complete.
func onLines[C driver.Config](t testing.TB, name string, lines *boardtest.Chip, fill func(C)) C {
	t.Helper()
	d, ok := driver.Find(Drivers(boardtest.Lines(lines)), name)
	if !ok {
		t.Fatalf("there is no driver %s", name)
	}
	c := d.Config().(C)
	fill(c)
	return c
}
