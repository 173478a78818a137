package lan

import (
	"cmp"
	"net"
	"sync"
	"time"

	"agentsite/device"
)

// Bucket is a token bucket: it allows a rate, and at once at most Burst, or what it allows in a second if Burst is 0. It
// has no timer and needs no goroutine. It is not safe for concurrent use.
type Bucket struct {
	PerSecond int
	Burst     int
	used      float64
	at        time.Time
}

// Take reports whether n more are within the rate, and counts them. A negative n allows so many more.
func (b *Bucket) Take(n int) bool {
	now := time.Now()
	if !b.at.IsZero() {
		b.used = max(0, b.used-now.Sub(b.at).Seconds()*float64(b.PerSecond))
	}
	b.at = now
	b.used += float64(n)
	return b.used <= float64(cmp.Or(b.Burst, b.PerSecond))
}

// Limit returns c, which closes itself when its peer sends more than so many bytes in a second. Read then returns an
// Offline fault, and so do later Reads. Under TLS or Noise limit the connection below.
func Limit(c net.Conn, perSecond int) net.Conn {
	return &limited{Conn: c, bucket: Bucket{PerSecond: perSecond}}
}

type limited struct {
	net.Conn
	mu     sync.Mutex
	bucket Bucket
	flood  error
}

func (l *limited) Read(b []byte) (int, error) {
	l.mu.Lock()
	flood := l.flood
	l.mu.Unlock()
	if flood != nil {
		return 0, flood
	}
	n, err := l.Conn.Read(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.bucket.Take(n) {
		l.flood = device.Faultf(device.Offline, "%v sends more than %d bytes in a second, and was disconnected; look what "+
			"is wrong with it",
			l.RemoteAddr(), l.bucket.PerSecond)
		l.Conn.Close()
		return 0, l.flood
	}
	return n, err
}
