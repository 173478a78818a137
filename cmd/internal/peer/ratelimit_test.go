package peer

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a connection on which there is always more.
type endless struct{ net.Conn }

func (endless) Read(b []byte) (int, error) { return len(b), nil }

func TestRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := limitRate(endless{})
		buf := make([]byte, 16<<10)
		read := func(most int) time.Duration {
			begun := time.Now()
			for n := 0; n < most; n += len(buf) {
				p.Read(buf)
			}
			return time.Since(begun)
		}
		if took := read(readBurst); took != 0 {
			t.Error("what may come at once takes", took)
		}
		if took := read(10 * readRate); took < 9*time.Second || took > 11*time.Second {
			t.Error("what floods comes in", took)
		}
		time.Sleep(time.Minute)
		if took := read(readBurst); took != 0 {
			t.Error("after a pause it takes", took)
		}
	})
}
