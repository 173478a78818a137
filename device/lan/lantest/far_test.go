package lantest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/lan"
)

// station is a fake peer with a relay and a thermometer. It answers "7 set on" and "7 get" by "7 relay on", and says
// "0 relay on" when somebody presses its button.
type station struct {
	listen  net.Listener
	serving sync.WaitGroup

	mu      sync.Mutex
	on      bool
	ignores bool
	floods  bool
	clients map[net.Conn]bool
	closed  bool
}

func startStation(t testing.TB) Peer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &station{listen: l, clients: make(map[net.Conn]bool)}
	s.serving.Go(s.accept)
	t.Cleanup(s.close)
	return Peer{
		Address: l.Addr().String(),
		Level:   func(string) device.Value { s.mu.Lock(); defer s.mu.Unlock(); return device.Bool(s.on) },
		Set:     func(_ string, v device.Value) { s.press(v.Bool()) },
		Ignore:  func(on bool) { s.mu.Lock(); defer s.mu.Unlock(); s.ignores = on },
		Flood:   s.flood,
	}
}

func (s *station) close() {
	s.listen.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.clients {
		c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *station) accept() {
	for {
		c, err := s.listen.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.clients[c] = true
		floods := s.floods
		if s.closed {
			c.Close()
		}
		s.mu.Unlock()
		s.serving.Go(func() { s.serve(c) })
		if floods {
			s.serving.Go(func() { flow(c) })
		}
	}
}

func (s *station) serve(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		var n int
		var verb, value string
		fmt.Sscan(lines.Text(), &n, &verb, &value)
		s.mu.Lock()
		if verb == "set" && !s.ignores {
			s.on = value == "on"
		}
		fmt.Fprintf(c, "%d relay %v\n", n, s.on)
		s.mu.Unlock()
	}
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

func (s *station) press(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on = on
	for c := range s.clients {
		fmt.Fprintf(c, "0 relay %v\n", s.on)
	}
}

func (s *station) flood() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.floods = true
	for c := range s.clients {
		s.serving.Go(func() { flow(c) })
	}
}

func flow(c net.Conn) {
	// long lines, so that a driver that reads them all reads much also on a busy machine
	lines := []byte(strings.Repeat("0 relay true"+strings.Repeat(" ", 200)+"\n", 100))
	for err := error(nil); err == nil; {
		_, err = c.Write(lines)
	}
}

// defect is a mistake of a driver of a station.
type defect int

const (
	none     defect = iota
	believes        // what it heard last, for ever
	trusts          // that what it has sent was done
	lingers         // on a connection on which it has waited in vain
	confuses        // answers to other calls
	presses         // on without a back-off
	gulps           // whatever is sent
	leaves          // a goroutine behind
	waits           // for ever in its Close
	shows           // what it has set, and not what it was told
	vague           // about its faults
	blocks          // the open until somebody is there
)

// far is a driver of a station. It keeps all rules but the one of its defect.
type far struct {
	address string
	defect  defect
	ctx     context.Context
	end     context.CancelFunc
	hurry   chan struct{}
	running sync.WaitGroup
	waited  atomic.Bool

	calls  sync.Mutex // one at a time
	mu     sync.Mutex
	conn   net.Conn // nil while there is none
	on     bool
	set    bool
	heard  time.Time
	number int
	answer chan bool // to the call with that number
	ready  chan struct{}
}

const (
	pingEvery = time.Second
	silence   = 3 * time.Second
)

func openFar(address string, d defect) (device.Device, error) {
	f := &far{address: address, defect: d, hurry: make(chan struct{}, 1), ready: make(chan struct{})}
	f.ctx, f.end = context.WithCancel(context.Background())
	f.running.Go(f.run)
	if d == leaves {
		go func() { select {} }()
	}
	if d == blocks {
		select {
		case <-f.ready:
		case <-time.After(openMax + time.Second):
		}
	}
	return f, nil
}

func (f *far) Describe() device.Description {
	return device.Description{Model: "station", Points: []device.Point{{Name: "relay", Kind: device.KindSwitch, Safe: device.Bool(false)}}}
}

// run keeps a connection.
func (f *far) run() {
	var backoff lan.Backoff
	for {
		if f.defect != presses && backoff.Wait(f.ctx, f.hurry) != nil || f.ctx.Err() != nil {
			return
		}
		c, err := lan.Dial(f.ctx, f.address)
		if err != nil {
			continue
		}
		if f.defect != gulps {
			c = lan.Limit(c, 64<<10)
		}
		f.mu.Lock()
		f.conn = c
		f.mu.Unlock()
		pinging := time.AfterFunc(0, func() {})
		ping := func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			c.SetWriteDeadline(time.Now().Add(silence))
			fmt.Fprintf(c, "0 get\n")
			pinging.Reset(pingEvery)
		}
		f.mu.Lock()
		pinging = time.AfterFunc(0, ping)
		f.mu.Unlock()
		size := 256
		if f.defect == gulps {
			size = 64 << 10
		}
		for lines := bufio.NewReaderSize(c, size); ; {
			if f.defect != believes {
				c.SetReadDeadline(time.Now().Add(silence))
			}
			line, err := lines.ReadSlice('\n')
			if err != nil {
				break
			}
			f.hear(string(line), &backoff)
		}
		c.Close()
		pinging.Stop()
		f.mu.Lock()
		if f.conn = nil; f.defect != believes {
			f.heard = time.Time{}
		}
		f.mu.Unlock()
	}
}

func (f *far) hear(line string, b *lan.Backoff) {
	var n int
	var on bool
	if _, err := fmt.Sscanf(line, "%d relay %t", &n, &on); err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard.IsZero() {
		b.Succeeded()
		select {
		case <-f.ready:
		default:
			close(f.ready)
		}
	}
	f.on, f.heard = on, time.Now()
	if f.answer != nil && (n == f.number || f.defect == confuses && n != 0) {
		f.answer <- on
		f.answer = nil
	}
}

func (f *far) Sample(ctx context.Context) ([]device.Reading, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := device.Reading{Point: "relay", Value: device.Bool(f.on), Quality: device.Good, At: f.heard}
	switch {
	case f.defect == believes:
		r.At = time.Now()
	case f.heard.IsZero() && f.defect == vague:
		return nil, errors.New("it is away")
	case f.heard.IsZero():
		return nil, device.Faultf(device.Offline, "%s does not answer; look whether it is switched on", f.address)
	case f.defect == shows:
		r.Value = device.Bool(f.set)
	}
	return []device.Reading{r}, ctx.Err()
}

func (f *far) Apply(ctx context.Context, point string, v device.Value) error {
	if p, ok := f.Describe().Point(point); !ok || p.Accepts(v) != nil {
		return device.Faultf(device.Invalid, "no")
	}
	f.calls.Lock()
	defer f.calls.Unlock()
	select {
	case f.hurry <- struct{}{}:
	default:
	}
	var c net.Conn
	for {
		f.mu.Lock()
		if c = f.conn; c != nil {
			break
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return device.Faultf(device.Offline, "%s is away (%w)", f.address, ctx.Err())
		case <-f.ctx.Done():
			return device.Faultf(device.Offline, "closed")
		case <-time.After(10 * time.Millisecond):
		}
	}
	f.number++
	answer := make(chan bool, 1)
	f.answer = answer
	c.SetWriteDeadline(time.Now().Add(silence))
	fmt.Fprintf(c, "%d set %v\n", f.number, map[bool]string{true: "on", false: "off"}[v.Bool()])
	f.set = v.Bool()
	f.mu.Unlock()
	if f.defect == trusts {
		return nil
	}
	select {
	case on := <-answer:
		if f.defect != confuses && on != v.Bool() {
			return device.Faultf(device.Offline, "%s is %v after it was set", point, on)
		}
		return nil
	case <-ctx.Done():
		if f.defect != lingers && f.defect != confuses {
			c.Close()
		}
		return device.Faultf(device.UnknownOutcome, "%s does not confirm it (%w)", f.address, ctx.Err())
	case <-f.ctx.Done():
		return device.Faultf(device.Offline, "closed")
	}
}

func (f *far) Close() error {
	var err error
	if f.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(f.ctx, callTime)
		err = f.Apply(ctx, "relay", device.Bool(false))
		cancel()
	}
	if f.defect == waits && f.waited.CompareAndSwap(false, true) {
		time.Sleep(closeMax + slack)
	}
	f.end()
	f.mu.Lock()
	if f.conn != nil {
		f.conn.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
	return err
}

func suite(d defect) Network {
	return Network{
		Peer:   func(t *testing.T) Peer { return startStation(t) },
		Open:   func(_ *testing.T, address string) (device.Device, error) { return openFar(address, d) },
		Notice: 6 * time.Second, Recover: 10 * time.Second,
	}
}

func TestAGoodDriverPasses(t *testing.T) { suite(none).Run(t) }

// TestABrokenDriverFails: each rule finds a driver that breaks it.
func TestABrokenDriverFails(t *testing.T) {
	find := func(d defect, r rule) func(*testing.T) {
		return func(t *testing.T) {
			err := r.run(&rig{Network: suite(d), t: t})
			if _, skipped := errors.AsType[skip](err); err == nil || skipped {
				t.Errorf("it is not found: %v", err)
			}
			t.Log(err)
		}
	}
	var running sync.WaitGroup
	for _, c := range []struct {
		defect defect
		rule   rule
	}{
		{believes, rule{"network_lost", lost}},
		{believes, rule{"network_silent", silent}},
		{vague, rule{"network_lost", lost}},
		{trusts, rule{"network_confirmed", confirmed}},
		{lingers, rule{"network_not_later", notLater}},
		{confuses, rule{"network_late_answer", lateAnswer}},
		{shows, rule{"network_second_writer", secondWriter}},
		{presses, rule{"network_backoff", backoff}},
		{gulps, rule{"network_flood", flood}},
		{believes, rule{"network_guard_lost", guardLost}},
		{shows, rule{"network_guard_second_writer", guardSecondWriter}},
	} {
		running.Go(func() { t.Run(fmt.Sprint(c.rule.name, c.defect), find(c.defect, c.rule)) })
	}
	running.Wait()
	for _, c := range []struct {
		defect defect
		rule   rule
	}{
		{blocks, rule{"network_absent", absent}},
		{waits, rule{"network_close", closing}},
		{leaves, rule{"network_close", closing}},
	} {
		t.Run(fmt.Sprint(c.rule.name, c.defect), find(c.defect, c.rule))
	}
}
