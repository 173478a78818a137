package mqtt

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
	"agentsite/device/mqtt/packet"
)

const (
	openTimeout  = 5 * time.Second
	greetTimeout = 4 * time.Second
	writeTimeout = 2 * time.Second
	maxRate      = 200       // packets in a second, of which a long message counts for one each 2 KiB
	maxBytes     = 512 << 10 // in a second, also of what is no packet
	perSubscribe = 32        // topics in a packet
	expiry       = 2         // seconds for which a broker keeps a command for a device that it does not reach
	slowly       = 10 * time.Second
	goodbye      = 300 * time.Millisecond
)

// timing has the time between two pings, and the longest silence of a broker: after that the connection has ended.
type timing struct{ ping, silence time.Duration }

var usual = timing{ping: 4 * time.Second, silence: 9 * time.Second}

// access has the address and the credentials of a broker.
type access struct {
	url, user, ca string
	password      driver.File
}

// brokers has the connections of a process: one to each broker, shared by its devices.
type brokers struct {
	timing

	mu  sync.Mutex
	all map[access]*broker
}

func newBrokers() *brokers { return &brokers{timing: usual, all: make(map[access]*broker)} }

// broker is the connection to a broker, which is made again whenever it has ended.
type broker struct {
	access
	timing
	owner *brokers
	users int // under owner.mu
	end   context.CancelFunc
	ended chan struct{}
	hurry chan struct{} // a caller waits for the connection

	mu      sync.Mutex
	devices map[*dev]bool
	link    *link  // nil without a connection
	why     string // there is none
	changed chan struct{}
	version byte
}

// join returns the connection for a device, which is subscribed for. It waits for it for five seconds, or until ctx
// ends, and returns an Offline fault without it.
func (all *brokers) join(ctx context.Context, a access, d *dev) (*broker, error) {
	all.mu.Lock()
	b := all.all[a]
	if b == nil {
		running, end := context.WithCancel(context.Background())
		b = &broker{
			access: a, timing: all.timing, owner: all, end: end, ended: make(chan struct{}), hurry: make(chan struct{}, 1),
			devices: make(map[*dev]bool), changed: make(chan struct{}), version: packet.V5, why: "it connects to the broker",
		}
		all.all[a] = b
		go b.run(running)
	}
	b.users++
	all.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	l, err := b.await(ctx)
	if err == nil {
		d.found()
		b.mu.Lock()
		b.devices[d] = true
		b.mu.Unlock()
		err = l.begin(ctx, d)
	}
	if err != nil {
		b.leave(d)
		return nil, err
	}
	return b, nil
}

// leave ends the connection with its last device.
func (b *broker) leave(d *dev) {
	b.mu.Lock()
	delete(b.devices, d)
	l := b.link
	var unused []string
	for _, topic := range d.topics() {
		used := false
		for other := range b.devices {
			used = used || slices.Contains(other.topics(), topic)
		}
		if !used {
			unused = append(unused, topic)
		}
	}
	b.mu.Unlock()
	b.owner.mu.Lock()
	b.users--
	last := b.users == 0
	if last {
		delete(b.owner.all, b.access)
	}
	b.owner.mu.Unlock()
	switch {
	case last:
		b.end()
		<-b.ended
	case l != nil && len(unused) > 0:
		l.write(time.Now().Add(writeTimeout), func(p []byte, id uint16) []byte {
			return packet.AppendUnsubscribe(p, l.version, id, unused)
		})
	}
}

// await returns the connection, for which it waits until ctx ends. It makes a try of a connection come soon.
func (b *broker) await(ctx context.Context) (*link, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.mu.Lock()
		l, changed, why := b.link, b.changed, b.why
		b.mu.Unlock()
		if l != nil {
			return l, nil
		}
		poke(b.hurry)
		select {
		case <-changed:
		case <-ctx.Done():
			err := device.Faultf(device.Offline,
				"%s; look whether the broker of mqtt runs, and at broker, user and password_file", why)
			err.Err = ctx.Err()
			return nil, err
		}
	}
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run keeps a connection until ctx ends.
func (b *broker) run(ctx context.Context) {
	defer close(b.ended)
	var pauses lan.Backoff
	said := ""
	for pauses.Wait(ctx, b.hurry) == nil {
		l, err := b.connect(ctx)
		if err == nil {
			began := time.Now()
			err = l.serve(ctx)
			if time.Since(began) > slowly { // a broker that lets in and then floods is asked less and less often
				pauses.Succeeded()
				said = ""
			}
		}
		if ctx.Err() != nil {
			return
		}
		refused, is := errors.AsType[*packet.RefusedError](err)
		if is && refused.Version() && b.version == packet.V5 {
			b.version = packet.V311
		}
		b.set(nil, describe(b.url, err))
		if text := err.Error(); text != said {
			said = text
			slog.Warn("the broker of MQTT devices is not reached and is tried again", "broker", b.url, "err", err)
		}
		if is && !refused.Version() { // a wrong password does not become right by itself
			device.Sleep(ctx, slowly)
		}
	}
}

// describe returns why there is no connection.
func describe(url string, err error) string {
	return "the broker at " + url + " is not reached: " + device.Clip(err.Error(), 200)
}

// set makes l the connection; nil is none, with the reason.
func (b *broker) set(l *link, why string) {
	b.mu.Lock()
	b.link, b.why = l, why
	close(b.changed)
	b.changed = make(chan struct{})
	if l == nil {
		for d := range b.devices {
			d.lost(why)
		}
	}
	b.mu.Unlock()
}

// connect makes a connection, and subscribes for all devices.
func (b *broker) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	conn, err := dial(ctx, b.access)
	if err != nil {
		return nil, err
	}
	hello := packet.Hello{
		Client: "agentsite-" + strconv.FormatUint(rand.Uint64(), 36), User: b.user,
		Seconds: uint16((b.silence + time.Second - 1) / time.Second), Longest: maxPayload,
	}
	if b.password != "" {
		if hello.Password, err = b.password.Secret(); err != nil {
			conn.Close()
			return nil, err
		}
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	p, err := packet.Greet(ctx, conn, in, b.version, hello, maxPayload)
	if err != nil {
		return nil, err
	}
	l := &link{
		broker: b, conn: conn, in: in, version: b.version, longest: maxPayload, timing: b.timing,
		writing: device.NewMutex(), subscribed: make(map[uint16]subscription), pending: make(map[uint16]func(byte)),
		gone: make(chan struct{}),
	}
	if p.KeepAlive > 0 { // as it wants
		l.ping = min(l.ping, max(time.Second, time.Duration(p.KeepAlive)*time.Second*2/3))
	}
	if p.MaxPacket > 0 {
		l.longest = int(min(p.MaxPacket, maxPayload))
	}
	return l, nil
}

// dial connects to a broker, with TLS where its URL says so.
func dial(ctx context.Context, a access) (net.Conn, error) {
	u, err := url.Parse(a.url)
	if err != nil {
		return nil, err
	}
	secure, port := u.Scheme == "mqtts", u.Port()
	if port == "" {
		port = "1883"
		if secure {
			port = "8883"
		}
	}
	tcp, err := lan.Dial(ctx, net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	conn := lan.Limit(tcp, maxBytes)
	if !secure {
		return conn, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	if a.ca != "" {
		c.RootCAs, err = driver.File(a.ca).Authorities()
	}
	over := tls.Client(conn, c)
	if err == nil {
		err = over.HandshakeContext(ctx)
	}
	if err != nil {
		tcp.Close()
		if _, is := errors.AsType[*tls.CertificateVerificationError](err); is { // its text has names that anybody can choose
			err = device.Faultf(device.Offline,
				"its certificate is not valid for it; look at its date and name, or write ca_file")
		}
		return nil, err
	}
	return over, nil
}
