package peer

import (
	"net"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Bytes that a site may send at once, such as several images, and each second.
	readBurst = 16 << 20
	readRate  = 2 << 20
)

// rateLimited is a connection that reads at a bounded rate, so that a site that floods its
// caller costs little.
type rateLimited struct {
	net.Conn
	limiter *rate.Limiter
}

func limitRate(c net.Conn) *rateLimited {
	return &rateLimited{c, rate.NewLimiter(readRate, readBurst)}
}

// Read sleeps after a read beyond the rate.
func (c *rateLimited) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b[:min(len(b), readBurst)])
	time.Sleep(c.limiter.ReserveN(time.Now(), n).Delay())
	return n, err
}
