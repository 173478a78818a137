package hosting

import (
	"io"
	"sync"
)

// pipe returns the two ends of a connection. Unlike net.Pipe it buffers what is written, as a
// network does.
func pipe() (a, b io.ReadWriteCloser) {
	one, other := newHalf(), newHalf()
	return end{one, other}, end{other, one}
}

type end struct{ in, out *half }

func (e end) Read(b []byte) (int, error)  { return e.in.read(b) }
func (e end) Write(b []byte) (int, error) { return e.out.write(b) }
func (e end) Close() error                { e.in.close(); e.out.close(); return nil }

// half is one direction.
type half struct {
	mu     sync.Mutex
	more   *sync.Cond
	bytes  []byte
	closed bool
}

func newHalf() *half {
	h := new(half)
	h.more = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.bytes) == 0 {
		if h.closed {
			return 0, io.EOF
		}
		h.more.Wait()
	}
	n := copy(b, h.bytes)
	h.bytes = h.bytes[n:]
	return n, nil
}

func (h *half) write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, io.ErrClosedPipe
	}
	h.bytes = append(h.bytes, b...)
	h.more.Broadcast()
	return len(b), nil
}

func (h *half) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.more.Broadcast()
}
