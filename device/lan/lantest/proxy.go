package lantest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is the link between a driver and its peer. It passes on TCP connections until it is told otherwise.
type Proxy struct {
	Address string // where the driver connects to

	to      string
	listen  net.Listener
	running sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond
	cut      bool
	frozen   bool
	late     time.Duration
	closed   bool
	links    map[*link]bool
	attempts int
	carried  int64
}

// link is a connection.
type link struct {
	near, far net.Conn // to the driver, to the peer
	left      bool     // the driver has ended it
}

// NewProxy starts a proxy before the peer at that address. It ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), to: to, listen: l, links: make(map[*link]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Close ends all connections and the proxy.
func (p *Proxy) Close() {
	p.set(func() { p.closed = true; p.endAll() })
	p.listen.Close()
	p.running.Wait()
}

// Cut ends all connections, and refuses others until Mend.
func (p *Proxy) Cut() { p.set(func() { p.cut = true; p.endAll() }) }

// Freeze passes on nothing more until Mend, as a link that loses every packet. What a driver has sent before it ends
// a frozen connection is lost.
func (p *Proxy) Freeze() { p.set(func() { p.frozen = true }) }

// Mend ends a cut, a freeze and a delay.
func (p *Proxy) Mend() { p.set(func() { p.cut, p.frozen, p.late = false, false, 0 }) }

// Delay makes everything later, in both directions.
func (p *Proxy) Delay(late time.Duration) { p.set(func() { p.late = late }) }

// Attempts returns how often the driver has connected.
func (p *Proxy) Attempts() int { p.mu.Lock(); defer p.mu.Unlock(); return p.attempts }

// Left reports whether the driver has ended all connections of a frozen link.
func (p *Proxy) Left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if !l.left {
			return false
		}
	}
	return true
}

// Carried returns how many bytes have gone to the driver.
func (p *Proxy) Carried() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.carried }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// endAll ends all connections. The caller holds mu.
func (p *Proxy) endAll() {
	for l := range p.links {
		l.near.Close()
		l.far.Close()
	}
}

func (p *Proxy) accept() {
	for {
		near, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.attempts++
		refused, frozen := p.cut || p.closed, p.frozen
		p.mu.Unlock()
		if refused {
			near.(*net.TCPConn).SetLinger(0)
			near.Close()
			continue
		}
		p.running.Go(func() { p.serve(near, frozen) })
	}
}

func (p *Proxy) serve(near net.Conn, frozen bool) {
	defer near.Close()
	if frozen { // such a link carries no handshake, but the kernel has already answered it
		p.wait(nil)
		return
	}
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer far.Close()
	_ = near.(*net.TCPConn).SetWriteBuffer(64 << 10) // so that carried is what the driver has read, nearly
	l := &link{near: near, far: far}
	ended := false
	p.set(func() {
		p.links[l] = true
		ended = p.cut || p.closed
	})
	if ended {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() { p.carry(l, near, far, true) })
	p.carry(l, far, near, false)
	copying.Wait()
	p.set(func() { delete(p.links, l) })
}

// wait waits until the link is not frozen, and reports whether it carries more of l.
func (p *Proxy) wait(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.frozen && !p.closed && !p.cut {
		p.changed.Wait()
	}
	return !p.closed && !p.cut && (l == nil || !l.left)
}

// piece is something to pass on.
type piece struct {
	bytes []byte
	at    time.Time
}

// carry passes on what from sends, and ends both connections when one of them has ended.
func (p *Proxy) carry(l *link, from, to net.Conn, fromDriver bool) {
	pieces := make(chan piece, 16)
	p.running.Go(func() {
		defer close(pieces)
		for b := make([]byte, 16<<10); ; {
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{append([]byte(nil), b[:n]...), time.Now()}
			}
			if err != nil {
				if fromDriver {
					p.set(func() { l.left = l.left || p.frozen })
				}
				return
			}
		}
	})
	for next := range pieces {
		p.mu.Lock()
		late := p.late
		p.mu.Unlock()
		time.Sleep(time.Until(next.at.Add(late)))
		if !p.wait(l) {
			break
		}
		if n, err := to.Write(next.bytes); err != nil {
			break
		} else if !fromDriver {
			p.set(func() { p.carried += int64(n) })
		}
	}
	p.wait(l) // a frozen link does not carry the end of a connection either
	from.Close()
	to.Close()
	for range pieces { // let the reader end
	}
}
