package mqtt

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/mqtt/packet"
)

// link is one connection to a broker, from its greeting to its end.
type link struct {
	broker  *broker
	conn    net.Conn
	in      *bufio.Reader
	version byte
	longest int // packet that the broker takes
	timing
	gone chan struct{} // closed at its end

	writing device.Mutex // one packet at a time

	mu         sync.Mutex
	id         uint16
	subscribed map[uint16]subscription    // that wait for an answer
	pending    map[uint16]func(code byte) // messages of QoS 1 that wait for an answer
}

// subscription is one to some topics; done is closed when the broker has answered.
type subscription struct {
	topics []string
	done   chan struct{}
}

// serve reads until the connection ends, and returns why.
func (l *link) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		l.write(time.Now().Add(goodbye), func(p []byte, _ uint16) []byte { return packet.AppendDisconnect(p) })
		l.conn.Close()
	})
	defer stop()
	defer l.drop()
	var topics []string
	b := l.broker
	b.mu.Lock()
	for d := range b.devices {
		d.found()
		topics = append(topics, d.topics()...)
	}
	b.mu.Unlock()
	pinging := make(chan struct{})
	go func() {
		defer close(pinging)
		l.pings()
	}()
	defer func() { l.drop(); <-pinging }()
	starting, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if _, err := l.subscribe(starting, topics); err != nil {
		return err
	}
	b.set(l, "")
	b.mu.Lock()
	devices := make([]*dev, 0, len(b.devices))
	for d := range b.devices {
		devices = append(devices, d)
	}
	b.mu.Unlock()
	for _, d := range devices {
		l.askAll(starting, d)
	}
	return l.read()
}

// drop ends the connection. What was not sent is not sent any more.
func (l *link) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gone:
		return
	default:
	}
	close(l.gone)
	l.conn.Close()
}

// pings asks whether the broker is there until the connection ends.
func (l *link) pings() {
	ticker := time.NewTicker(l.ping)
	defer ticker.Stop()
	for {
		select {
		case <-l.gone:
			return
		case <-ticker.C:
			if l.write(time.Now().Add(writeTimeout), func(p []byte, _ uint16) []byte { return packet.AppendPing(p) }) != nil {
				return
			}
		}
	}
}

// write writes a packet before a deadline, or ends the connection: half a packet cannot be taken back.
func (l *link) write(deadline time.Time, packet func(b []byte, id uint16) []byte) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	_, err := l.send(ctx, func(id uint16) []byte { return packet(nil, id) })
	return err
}

// send writes a packet with an ID of its own before ctx ends, or ends the connection. Where begun is false, nothing was
// written.
func (l *link) send(ctx context.Context, packet func(id uint16) []byte) (begun bool, err error) {
	if err := l.writing.LockContext(ctx); err != nil {
		return false, err
	}
	defer l.writing.Unlock()
	l.mu.Lock()
	for l.id++; l.id == 0 || l.pending[l.id] != nil; l.id++ {
	}
	id := l.id
	l.mu.Unlock()
	b := packet(id)
	if len(b) > l.longest+5 {
		return false, device.Faultf(device.Invalid, "the broker takes packets of %d bytes at most", l.longest)
	}
	deadline, ok := ctx.Deadline()
	if !ok || time.Until(deadline) > writeTimeout {
		deadline = time.Now().Add(writeTimeout)
	}
	l.conn.SetWriteDeadline(deadline)
	defer l.conn.SetWriteDeadline(time.Time{}) // one that is left wakes the processor
	if _, err := l.conn.Write(b); err != nil {
		l.drop()
		return true, device.Faultf(device.Offline, "the broker does not take a message: %w; look whether it runs", err)
	}
	return true, nil
}

// subscribe subscribes to topics. The broker has answered when all channels are closed.
func (l *link) subscribe(ctx context.Context, topics []string) (answers []chan struct{}, err error) {
	for len(topics) > 0 {
		s := subscription{topics[:min(len(topics), perSubscribe)], make(chan struct{})}
		topics = topics[len(s.topics):]
		_, err := l.send(ctx, func(id uint16) []byte {
			l.mu.Lock()
			l.subscribed[id] = s
			l.mu.Unlock()
			return packet.AppendSubscribeAll(nil, l.version, id, s.topics)
		})
		if err != nil {
			return nil, err
		}
		answers = append(answers, s.done)
	}
	return answers, nil
}

// begin subscribes for a device, and waits for the answer.
func (l *link) begin(ctx context.Context, d *dev) error {
	answers, err := l.subscribe(ctx, d.topics())
	if err != nil {
		return err
	}
	for _, answer := range answers {
		select {
		case <-answer:
		case <-l.gone:
			return device.Faultf(device.Offline, "the connection to the broker has ended; it is tried again")
		case <-ctx.Done():
			err := device.Faultf(device.Offline, "the broker does not answer; look whether it runs")
			err.Err = ctx.Err()
			return err
		}
	}
	l.askAll(ctx, d)
	return nil
}

// publish sends a command at QoS 1. done is called when the broker has it, unless forget was called before.
func (l *link) publish(ctx context.Context, topic string, payload []byte, done func(code byte)) (forget func(), begun bool, err error) {
	var own uint16
	begun, err = l.send(ctx, func(id uint16) []byte {
		own = id
		l.mu.Lock()
		l.pending[id] = done
		l.mu.Unlock()
		return packet.AppendCommand(nil, l.version, id, topic, payload, expiry)
	})
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.pending, own)
	}, begun, err
}

// askAll makes the outputs of a device say their states, where their kind can be asked.
func (l *link) askAll(ctx context.Context, d *dev) {
	asked := make(map[string]bool)
	for _, p := range d.points {
		if p.out != nil && p.out.ask != "" && !asked[p.out.ask+" "+p.out.askPayload] {
			asked[p.out.ask+" "+p.out.askPayload] = true
			l.ask(ctx, p)
		}
	}
}

// ask makes an output say its state.
func (l *link) ask(ctx context.Context, p point) {
	l.send(ctx, func(uint16) []byte {
		return packet.AppendPublish(nil, l.version, 0, p.out.ask, []byte(p.out.askPayload), false)
	})
}

// read gives the devices what the broker sends, until the connection ends.
func (l *link) read() error {
	from := packet.Source{Conn: l.conn, In: l.in, Version: l.version, Limit: maxPayload, Rate: maxRate, Silence: l.silence}
	for {
		p, err := from.Next()
		if err != nil {
			return err
		}
		switch p.Kind {
		case packet.Publish:
			l.broker.give(p)
		case packet.Puback:
			l.answer(p)
		case packet.Suback:
			l.mu.Lock()
			s, waits := l.subscribed[p.ID]
			delete(l.subscribed, p.ID)
			l.mu.Unlock()
			for i, code := range p.Codes {
				if code >= 0x80 && i < len(s.topics) {
					l.broker.refused(s.topics[i])
				}
			}
			if waits {
				close(s.done)
			}
		case packet.Disconnect:
			return &packet.RefusedError{Code: p.Code(), Reason: p.Reason}
		}
	}
}

func (l *link) answer(p packet.Packet) {
	l.mu.Lock()
	done := l.pending[p.ID]
	delete(l.pending, p.ID)
	l.mu.Unlock()
	if done != nil {
		done(p.Code())
	}
}

// give gives a message to the devices that subscribed to its topic.
func (b *broker) give(p packet.Packet) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := range b.devices {
		d.take(p.Topic, p.Payload, p.Retain)
	}
}

// refused tells the devices that a topic cannot be read.
func (b *broker) refused(topic string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for d := range b.devices {
		d.refuse(topic)
	}
}
