package site

import (
	"net"
	"time"
)

const (
	// A site may say so much at once, pictures that follow each other, and so much a second.
	saysAtOnce    = 16 << 20
	saysPerSecond = 2 << 20
)

// paced is a connection to a site that takes in what one has to say, and no more: who
// floods waits, and costs next to nothing. One at a time reads from it.
type paced struct {
	net.Conn
	left int // bytes that may come at once
	at   time.Time
}

func newPaced(c net.Conn) *paced { return &paced{c, saysAtOnce, time.Now()} }

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	now := time.Now()
	p.left = min(p.left+int(now.Sub(p.at).Seconds()*saysPerSecond), saysAtOnce) - n
	p.at = now
	if p.left < 0 {
		time.Sleep(time.Duration(-p.left) * time.Second / saysPerSecond)
	}
	return n, err
}
