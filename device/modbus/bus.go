package modbus

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/device"
	"agentsite/device/lan"
)

// line is an open serial port or connection. It is used by one caller at a time.
type line interface {
	exchange(until time.Time, id byte, r request) ([]uint16, error)
	abort()
}

// buses are the buses of a process, by the name of the port or host.
type buses struct {
	mu  sync.Mutex
	all map[string]*bus
}

// bus is a serial port or a host that the devices on it share.
type bus struct {
	name   string // for messages
	serial bool
	open   func(ctx context.Context) (line, error)

	of   *buses
	refs int // under of.mu

	silence [256]atomic.Bool // of each unit: its last request had no answer

	turn queue // guards the fields below, and is held while the line is used

	line   line
	failed error       // why the line could not be opened, or was closed
	pauses lan.Backoff // between the tries to open it, until a unit answers
	probes uint16      // how many probes were sent
	lost   int         // how many requests in a row had no answer
	units  map[byte]*unit
	closed bool
}

// unit holds the state of one unit on a bus.
type unit struct {
	pauses lan.Backoff // between requests while it does not answer, but for urgent ones
	owed   owed
}

// acquire returns the bus with that name. The caller has to release it.
func (all *buses) acquire(name string, serial bool, open func(context.Context) (line, error)) *bus {
	all.mu.Lock()
	defer all.mu.Unlock()
	b, ok := all.all[name]
	if !ok {
		b = &bus{name: name, serial: serial, open: open, of: all, units: make(map[byte]*unit)}
		if all.all == nil {
			all.all = make(map[string]*bus)
		}
		all.all[name] = b
	}
	b.refs++
	return b
}

// release closes the line when the last device has released the bus.
func (b *bus) release() {
	b.of.mu.Lock()
	b.refs--
	last := b.refs == 0
	if last {
		delete(b.of.all, b.name)
	}
	b.of.mu.Unlock()
	if last {
		b.turn.lock(context.Background(), true)
		defer b.turn.unlock()
		b.closed = true
		if b.line != nil {
			b.line.abort()
			b.line = nil
		}
	}
}

// call is one request of a device.
type call struct {
	request
	id      byte
	timeout time.Duration
	urgent  bool // an output: it goes to a silent unit too, and first to one that answers
}

// do makes a request and returns the values of its answer. It begins none whose time would end after ctx. The
// error is an exceptionError, a fault or ctx's.
func (b *bus) do(ctx context.Context, c call) ([]uint16, error) {
	if err := b.turn.lock(ctx, c.urgent && !b.silence[c.id].Load()); err != nil {
		return nil, err
	}
	defer b.turn.unlock()
	u, ok := b.units[c.id]
	if !ok {
		u = &unit{}
		b.units[c.id] = u
	}
	if u.pauses.Due(false) > 0 && !c.urgent {
		return nil, b.noAnswer(c.id)
	}
	values, err := b.try(ctx, c, u)
	if again(err) {
		values, err = b.try(ctx, c, u)
	}
	return values, b.fault(c, err)
}

// again reports whether another try may help at once: the connection was closed while it was not used, or an
// answer was damaged.
func again(err error) bool {
	var f *device.Fault
	final := errors.As(err, &f) || errors.As(err, new(exceptionError)) ||
		errors.Is(err, errSilent) || errors.Is(err, errFlood)
	return err != nil && !final && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// try makes one exchange.
func (b *bus) try(ctx context.Context, c call, u *unit) ([]uint16, error) {
	if err := b.connect(ctx, c.urgent); err != nil {
		return nil, err
	}
	if b.serial && u.owed.confuses(c.request) {
		b.probes++
		_, err := b.exchange(ctx, call{probe(b.probes), c.id, c.timeout, c.urgent}, u)
		if err != nil && !errors.As(err, new(exceptionError)) {
			return nil, err
		}
	}
	return b.exchange(ctx, c, u)
}

func (b *bus) exchange(ctx context.Context, c call, u *unit) ([]uint16, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	until := time.Now().Add(c.timeout)
	if end, ok := ctx.Deadline(); ok && until.After(end) {
		return nil, device.Faultf(device.Offline,
			"there was no time left to ask unit %d on %s: %w", c.id, b.name, context.DeadlineExceeded)
	}
	values, err := b.line.exchange(until, c.id, c.request)
	refused, isRefusal := errors.AsType[exceptionError](err)
	switch {
	case err == nil, isRefusal && !refused.absent():
		u.pauses, b.pauses, b.lost = lan.Backoff{}, lan.Backoff{}, 0
		b.silence[c.id].Store(false)
		u.owed.answered(c.request, isRefusal)
	case isRefusal, errors.Is(err, errSilent):
		b.silent(c, u, isRefusal)
	case errors.Is(err, errTalk):
	case b.serial && errors.As(err, new(strangeError)):
		u.owed.add(c.request)
	default:
		b.drop(err)
	}
	return values, err
}

// silent notes that a unit did not answer. A connection is closed after a write, which could still be on its
// way, and where nobody on it answers.
func (b *bus) silent(c call, u *unit, refused bool) {
	u.pauses.Tried()
	b.silence[c.id].Store(true)
	switch {
	case refused:
	case b.serial:
		u.owed.add(c.request)
	default:
		if b.lost++; b.lost > 1 || !c.reads() {
			b.drop(errSilent)
		}
	}
}

// drop closes the line.
func (b *bus) drop(why error) {
	b.line.abort()
	b.line, b.failed, b.lost = nil, why, 0
	if errors.Is(why, errFlood) {
		b.pauses.Tried()
	}
}

// connectTimeout leaves time for a request within the two seconds of the guard.
const connectTimeout = 1500 * time.Millisecond

// connect opens the line, unless it was tried shortly before.
func (b *bus) connect(ctx context.Context, urgent bool) error {
	switch {
	case b.closed:
		return device.Faultf(device.Offline, "the device is closed")
	case b.line != nil:
		return nil
	case b.pauses.Due(urgent) > 0:
		return b.unreachable()
	}
	b.pauses.Tried()
	opening, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l, err := b.open(opening)
	if err != nil {
		b.failed = err
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return b.unreachable()
	}
	b.line, b.failed = l, nil
	return nil
}

// unreachable is the fault of a line that is not open.
func (b *bus) unreachable() error {
	var f *device.Fault
	switch {
	case errors.As(b.failed, &f):
		return f
	case errors.Is(b.failed, errFlood):
		return device.Faultf(device.Offline,
			"%s sends more than it is asked for, and is not asked for a while; check what else is on it", b.name)
	case b.serial:
		return device.Faultf(device.Offline, "%s is lost: %w; plug its adapter in again", b.name, b.failed)
	}
	return device.Faultf(device.Offline,
		"%s cannot be reached: %w; check that it is switched on, its address, and that it serves Modbus TCP",
		b.name, b.failed)
}

// noAnswer is the fault of a silent unit. Its cause is that of a time limit, for which the guard waits some
// seconds before it takes an output for lost.
func (b *bus) noAnswer(id byte) error {
	remedy := "check its supply and its unit_id"
	if b.serial {
		remedy = "check its supply, its unit_id, baud and parity, and the wires A and B"
	}
	f := device.Faultf(device.Offline, "unit %d on %s does not answer; %s", id, b.name, remedy)
	f.Err = context.DeadlineExceeded
	return f
}

// fault returns the fault of an error of try.
func (b *bus) fault(c call, err error) error {
	var f *device.Fault
	strange, isStrange := errors.AsType[strangeError](err)
	refused, isRefusal := errors.AsType[exceptionError](err)
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case isRefusal && refused.absent():
		return device.Faultf(device.Offline,
			"unit %d behind %s is not there: %v; check its supply and its unit_id", c.id, b.name, err)
	case isRefusal:
		return err
	case errors.Is(err, errSilent):
		return b.noAnswer(c.id)
	case isStrange:
		return device.Faultf(device.Offline, "unit %d on %s: %s", c.id, b.name, string(strange))
	}
	return b.unreachable()
}
