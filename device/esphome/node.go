package esphome

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"agentsite/device"
	"agentsite/device/lan"
)

const (
	// A node that was silent for quiet, or up to a second longer, is asked for a sign of life, and is lost if there is
	// none within answer.
	quiet  = 5 * time.Second
	answer = 4 * time.Second

	steady = time.Minute // a connection that lasted so long begins the back-off anew

	statesTimeout = time.Second // from a connection to the states of all points
)

// node is a device. It has one goroutine while it is connected or connecting, and none otherwise: who uses it
// begins a connection, unless a back-off is under way.
type node struct {
	*config
	desc    device.Description
	moving  device.Mutex // held by Apply and Close
	once    sync.Once
	running sync.WaitGroup

	stopping context.Context // ends an Apply
	stop     context.CancelFunc
	closing  context.Context // ends the connection
	hangUp   context.CancelFunc

	mu      sync.Mutex
	points  []*point // in the order of desc
	link    *link    // nil while it is not connected
	busy    bool     // the goroutine runs
	closed  bool
	err     error // why it is not connected
	pauses  lan.Backoff
	version uint64 // counts the changes of readings
	changed signal // of version
	came    signal // a message or a change
}

// link is a connection. Its other fields are guarded by node.mu.
type link struct {
	*frames
	pinging sync.Mutex // held while a ping is counted and sent, so that pongs are in the order of the pings

	number       uint64    // of the last message
	heard        time.Time // when it came
	pings, pongs uint64
	begun        time.Time
	entities     int
	expected     int   // messages of states that were asked for
	why          error // why it was cut
}

func newNode(c *config) *node {
	n := &node{config: c, desc: c.Describe(), points: c.points(), moving: device.NewMutex()}
	n.stopping, n.stop = context.WithCancel(context.Background())
	n.closing, n.hangUp = context.WithCancel(context.Background())
	n.version = 1
	return n
}

// Describe is constant.
func (n *node) Describe() device.Description { return n.desc }

// offline returns why a node cannot be reached, as a fault with what to do.
func (c *config) offline(err error) error {
	f, ok := errors.AsType[*device.Fault](err)
	switch {
	case ok && strings.HasPrefix(f.Msg, c.Address): // of lan
		return f
	case ok:
		return device.Faultf(f.Kind, "%s: %w", c.Address, err)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		err = errors.New("it does not answer")
	case errors.Is(err, syscall.ECONNREFUSED):
		err = errors.New("it refuses connections")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET):
		err = errors.New("the connection ended")
	}
	return device.Faultf(device.Offline, "%s is not connected: %w; check its supply, the Wi-Fi and its address",
		c.Address, err)
}

// signal wakes all who wait for it. The next wait is for the next one.
type signal struct{ raised chan struct{} } // nil while nobody waits

func (s *signal) wait() <-chan struct{} {
	if s.raised == nil {
		s.raised = make(chan struct{})
	}
	return s.raised
}

func (s *signal) raise() {
	if s.raised != nil {
		close(s.raised)
		s.raised = nil
	}
}

// change tells all who wait that readings have changed. The caller holds mu.
func (n *node) change() {
	n.version++
	n.changed.raise()
	n.came.raise()
}

// await waits until done returns true or an error, which it does with mu held. It is asked again at each signal.
func (n *node) await(ctx context.Context, s *signal, done func() (bool, error)) error {
	for {
		n.mu.Lock()
		ok, err := done()
		if ok || err != nil {
			n.mu.Unlock()
			return err
		}
		raised := s.wait()
		n.mu.Unlock()
		select {
		case <-raised:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connected returns the connection and, where there is none, begins one and waits for it. urgent shortens the
// back-off.
func (n *node) connected(ctx context.Context, urgent bool) (l *link, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	begun := false
	err = n.await(ctx, &n.came, func() (bool, error) {
		switch l = n.link; {
		case n.closed:
			return false, device.Faultf(device.Offline, "%s is closed", n.Address)
		case l != nil:
			return true, nil
		case n.busy:
		case begun, n.pauses.Due(urgent) > 0:
			return false, n.err
		default:
			n.busy = true
			n.running.Go(n.run)
		}
		begun = true
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, device.Faultf(device.Offline, "%s is not connected yet: %w", n.Address, ctx.Err())
	}
	return l, err
}

// ready returns the connection, once the states of all points have come, as far as the node sends them soon.
func (n *node) ready(ctx context.Context, urgent bool) (*link, error) {
	l, err := n.connected(ctx, urgent)
	if err != nil {
		return nil, err
	}
	soon, cancel := context.WithDeadline(ctx, l.begun.Add(statesTimeout))
	defer cancel()
	err = n.await(soon, &n.came, func() (bool, error) {
		if n.link != l {
			return false, n.err
		}
		return !slices.ContainsFunc(n.points, func(p *point) bool { return p.lacks == "" && p.said == 0 }), nil
	})
	if err != nil && soon.Err() != nil {
		err = ctx.Err()
	}
	return l, err
}

// connecting reports whether a connection is under way.
func (n *node) connecting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy
}

// run connects and reads until the connection ends.
func (n *node) run() {
	l, err := n.connect()
	if err == nil {
		err = n.read(l)
		l.conn.Close()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l != nil && l.why != nil {
		err = l.why
	}
	if l != nil && time.Since(l.begun) > steady {
		n.pauses = lan.Backoff{}
	}
	n.pauses.Tried()
	n.link, n.busy, n.err = nil, false, n.offline(err)
	for _, p := range n.points {
		p.is, p.said, p.lacks = nil, 0, ""
	}
	n.change()
}

// connect dials the node, logs in and learns its entities.
func (n *node) connect() (*link, error) {
	ctx, cancel := context.WithTimeout(n.closing, setupTimeout)
	defer cancel()
	limit := newLimiter()
	key, err := n.key() // each time, because the owner may have written another one
	if err != nil {
		return nil, err
	}
	f, err := open(ctx, n.dialer(), n.target(), key)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { f.conn.Close() })
	defer stop()
	entities := 0
	if err = f.login(&limit, n.MAC); err == nil {
		entities, err = n.learn(f, &limit)
	}
	if err == nil {
		err = f.send(time.Now().Add(sendTimeout), message{id: statesRequest})
	}
	if err != nil {
		f.conn.Close()
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.link = &link{frames: f, begun: now, heard: now, entities: entities}
	n.change()
	return n.link, nil
}

// open dials a node and begins its encryption. The deadline of ctx bounds the connection until it is changed.
func open(ctx context.Context, dial dialer, target string, secret []byte) (*frames, error) {
	conn, err := dial(ctx, target)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	f, err := newFrames(conn, secret)
	if err != nil {
		conn.Close()
	}
	return f, err
}

// learn finds the points' entities in the node's list, and returns how many there are.
func (n *node) learn(f *frames, limit *limiter) (int, error) {
	var known []string
	err := f.list(limit, func(e *entity) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range n.points {
			if p.entity == e.address() {
				p.learn(e)
			}
		}
		known = append(known, e.address())
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.points {
		if p.is == nil {
			p.lacks = "the node has no " + p.entity + device.Suggest(p.entity, sameKind(known, p.entity), "entity")
		}
	}
	return len(known), err
}

// sameKind returns the addresses of entities of the same kind as of.
func sameKind(known []string, of string) (same []string) {
	kind, _, _ := strings.Cut(of, "/")
	for _, k := range known {
		if strings.HasPrefix(k, kind+"/") {
			same = append(same, k)
		}
	}
	return same
}

// read reads messages until the connection ends, and asks a silent node for a sign of life.
func (n *node) read(l *link) error {
	stop := context.AfterFunc(n.closing, func() { l.conn.SetReadDeadline(time.Now()) })
	defer stop()
	limit := newLimiter()
	asked := false
	for {
		due := whole(time.Now().Add(quiet))
		if asked {
			due = time.Now().Add(answer)
		}
		l.conn.SetReadDeadline(due)
		if n.closing.Err() != nil {
			return n.goodbye(l)
		}
		if _, err := l.in.Peek(1); err != nil {
			if n.closing.Err() != nil {
				return n.goodbye(l)
			}
			if asked || !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
			asked = true
			if err := n.ask(l); err != nil {
				return err
			}
			continue
		}
		asked = false
		l.conn.SetReadDeadline(time.Now().Add(answer)) // for the rest of it
		m, err := l.next(&limit)
		if err != nil {
			return err
		}
		extra, err := n.take(l, m)
		if err != nil {
			return err
		}
		limit.messages.Take(-extra)
	}
}

// started is when the program began.
var started = time.Now()

// whole returns the next whole second of the program, so that many nodes are asked at once and wake the processor once.
func whole(t time.Time) time.Time {
	return started.Add((t.Sub(started) + time.Second - 1).Truncate(time.Second))
}

// goodbye ends a connection in an orderly way.
func (n *node) goodbye(l *link) error {
	l.send(time.Now().Add(100*time.Millisecond), message{id: disconnectRequest})
	return errors.New("it is closed")
}

// ask sends a ping.
func (n *node) ask(l *link) error {
	_, err := n.sendPing(l, time.Now().Add(sendTimeout))
	return err
}

// sendPing sends messages and then a ping, and returns its number.
func (n *node) sendPing(l *link, deadline time.Time, all ...message) (ping uint64, err error) {
	l.pinging.Lock()
	defer l.pinging.Unlock()
	n.mu.Lock()
	l.pings++
	ping = l.pings
	n.mu.Unlock()
	return ping, l.send(deadline, append(all, message{id: pingRequest})...)
}

// take takes in a message. It returns how many messages more are expected, because they were asked for.
func (n *node) take(l *link, m message) (extra int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.number++
	l.heard = time.Now()
	extra, l.expected = l.expected, 0
	defer n.came.raise()
	if m.id == pingResponse {
		l.pongs = min(l.pongs+1, l.pings)
		return extra, nil
	}
	k := kindOf(func(k *kind) bool { return k.state == m.id })
	if k == nil {
		return extra, nil
	}
	old := func(key, device uint32) string {
		if p := n.find(k, key, device); p != nil {
			return p.state.text
		}
		return ""
	}
	key, sub, s, ok := decodeState(k, m.body, old)
	if !ok {
		return 0, errNotAFrame
	}
	changed := false
	for _, p := range n.points {
		if p.has(k, key, sub) {
			changed = changed || p.said == 0 || p.state != s
			p.state, p.said, p.at = s, l.number, l.heard
		}
	}
	if changed {
		n.change()
	}
	return extra, nil
}

func (p *point) has(k *kind, key, device uint32) bool {
	return p.is != nil && p.is.kind == k && p.is.key == key && p.is.device == device
}

func (n *node) find(k *kind, key, device uint32) *point {
	for _, p := range n.points {
		if p.has(k, key, device) {
			return p
		}
	}
	return nil
}

// cut ends a connection at once. What was not sent is not sent any more.
func (n *node) cut(l *link, why error) {
	n.mu.Lock()
	l.why = cmp.Or(l.why, why)
	if n.link == l {
		n.link, n.err = nil, n.offline(l.why)
		n.change()
	}
	n.mu.Unlock()
	l.conn.Close()
}
