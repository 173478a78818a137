package peer

import (
	"net"
	"time"
)

const (
	// Bytes that a site may send at once, such as images in a row, and each second.
	readBurst = 16 << 20
	readRate  = 2 << 20
)

// rateLimited is a connection that reads at a bounded rate, so that a site that floods its
// caller costs little. It has one reader at a time.
type rateLimited struct {
	net.Conn
	left int // bytes that may come at once
	at   time.Time
}

func limitRate(c net.Conn) *rateLimited { return &rateLimited{c, readBurst, time.Now()} }

func (p *rateLimited) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	now := time.Now()
	p.left = min(p.left+int(now.Sub(p.at).Seconds()*readRate), readBurst) - n
	p.at = now
	if p.left < 0 {
		time.Sleep(time.Duration(-p.left) * time.Second / readRate)
	}
	return n, err
}
