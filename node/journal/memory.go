package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"agentsite/device"
	"agentsite/node"
)

const (
	// remembered is how long an idempotency key identifies its call.
	remembered = 24 * time.Hour
	// maxKeys limits the keys in memory; beyond it the oldest of the principal with the most is
	// evicted.
	maxKeys  = 4096
	maxBytes = 1 << 20 // of their outcomes, together; beyond it the oldest outcome of the principal with the most is forgotten
)

// The errors of a call whose key is known.
var (
	ErrReused  = errors.New("this idempotency key was used for another call; use a new key for each call")
	ErrPending = errors.New("the call with this idempotency key is still running; try again")
	// ErrUnknown: the program ended between the intent and the result, or the result was too
	// long to be stored. The call is not made a second time.
	ErrUnknown = errors.New("the call with this idempotency key has started, and its outcome is unknown; read the points before you call with a new key")
)

type (
	Call    = node.Asked
	Outcome = node.Outcome
)

func digest(c Call) []byte {
	h := sha256.New()
	h.Write([]byte(c.Tool))
	h.Write([]byte{0})
	h.Write(c.Args)
	return h.Sum(nil)
}

func intent(c Call) Entry {
	e := Entry{Kind: Intent, Who: c.Who, Tool: c.Tool, Digest: digest(c), Key: c.Key, Via: c.Via}
	if len(c.Args) <= maxArgs {
		e.Args = c.Args
	}
	return e
}

func result(o Outcome) Entry {
	e := Entry{Kind: Result, Fault: o.Fault, Says: device.Clip(o.Says, maxSays)}
	if !tooLong(o) {
		e.Value = o.Value
	}
	return e
}

func tooLong(o Outcome) bool { return len(o.Value) > maxValue }

// Ticket identifies a call whose intent is on the disk.
type Ticket struct {
	seq uint64
	key string // in the memory; "" for none
}

type remembering struct {
	who     string
	seq     uint64
	digest  []byte
	outcome *Outcome // nil while it is unknown
	lost    bool     // and stays unknown
	at      time.Time
}

// memory holds the calls that have an idempotency key, by principal and key, and in their order.
type memory struct {
	calls map[string]*remembering
	bySeq map[uint64]string // the keys of those without a result yet; nil after Open
	order []string
	count map[string]int // by principal
	bytes int            // of the outcomes
	held  map[string]int // of bytes, by principal
}

func newMemory() memory {
	return memory{calls: make(map[string]*remembering), bySeq: make(map[uint64]string), count: make(map[string]int), held: make(map[string]int)}
}

func memoryKey(who, key string) string { return who + "\x00" + key }

// recall adds an entry of an earlier run.
func (m *memory) recall(e Entry) {
	switch {
	case e.Kind == Intent && e.Key != "":
		key := memoryKey(e.Who, e.Key)
		m.put(key, &remembering{who: e.Who, seq: e.Seq, digest: e.Digest, lost: true})
		m.bySeq[e.Seq] = key
	case e.Kind == Result:
		r := m.calls[m.bySeq[e.Of]]
		delete(m.bySeq, e.Of)
		if r != nil && r.seq == e.Of { // else it was evicted
			m.complete(r, Outcome{Fault: e.Fault, Says: e.Says, Value: e.Value}, e.Fault == "" && e.Value == nil)
		}
	}
}

// recalled sets the time of all earlier calls to now: their age is unknown, because the clock
// may have been set in between.
func (m *memory) recalled(now time.Time) {
	for _, r := range m.calls {
		r.at = now
	}
	m.bySeq = nil
}

func (m *memory) put(key string, r *remembering) {
	if before, again := m.calls[key]; again {
		m.hold(before, nil)
	} else {
		m.order = append(m.order, key)
		m.count[r.who]++
	}
	m.calls[key] = r
	m.evict()
}

// evict removes calls and outcomes while there are too many: the oldest of the principal with the most,
// so that no principal can evict another's. A call whose outcome is forgotten is not made again.
func (m *memory) evict() {
	for len(m.order) > maxKeys {
		m.drop(m.oldest(m.count, func(*remembering) bool { return true }))
	}
	for m.bytes > maxBytes {
		r := m.calls[m.order[m.oldest(m.held, func(r *remembering) bool { return r.size() > 0 })]]
		m.hold(r, nil)
		r.lost = true
	}
}

// oldest returns the place in the order of the first such call of the principal that has the most.
func (m *memory) oldest(by map[string]int, such func(*remembering) bool) int {
	most := ""
	for who, n := range by {
		if n > by[most] {
			most = who
		}
	}
	return slices.IndexFunc(m.order, func(key string) bool { r := m.calls[key]; return r.who == most && such(r) })
}

// hold replaces the outcome of a call; nil is none.
func (m *memory) hold(r *remembering, o *Outcome) {
	before := r.size()
	r.outcome = o
	more := r.size() - before
	m.bytes += more
	if m.held[r.who] += more; m.held[r.who] == 0 {
		delete(m.held, r.who)
	}
}

func (m *memory) drop(i int) {
	r := m.calls[m.order[i]]
	m.hold(r, nil)
	if m.count[r.who]--; m.count[r.who] == 0 {
		delete(m.count, r.who)
	}
	delete(m.calls, m.order[i])
	m.order = slices.Delete(m.order, i, i+1)
}

// expire removes the calls that are older than remembered.
func (m *memory) expire(now time.Time) {
	for len(m.order) > 0 && now.Sub(m.calls[m.order[0]].at) > remembered {
		m.drop(0)
	}
}

func (m *memory) complete(r *remembering, o Outcome, tooLong bool) {
	if r.lost = tooLong; !tooLong {
		m.hold(r, &o)
		m.evict()
	}
}

func (r *remembering) size() int {
	if r.outcome == nil {
		return 0
	}
	return len(r.outcome.Value) + len(r.outcome.Says)
}

// Replay returns the outcome of an earlier call with this one's key, nil for an unknown key, or
// one of ErrReused, ErrPending and ErrUnknown.
func (j *Journal) Replay(c Call) (*Outcome, error) {
	if c.Key == "" {
		return nil, nil
	}
	d := digest(c)
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.memory.replay(c, d, time.Now())
}

func (m *memory) replay(c Call, digest []byte, now time.Time) (*Outcome, error) {
	m.expire(now)
	r, known := m.calls[memoryKey(c.Who, c.Key)]
	switch {
	case c.Key == "" || !known:
		return nil, nil
	case !bytes.Equal(r.digest, digest):
		return nil, ErrReused
	case r.outcome != nil:
		return r.outcome, nil
	case r.lost:
		return nil, ErrUnknown
	}
	return nil, ErrPending
}

// Begin makes the intent of a call durable, and blocks for the disk. For a known key it returns
// the outcome or the error of Replay, and the call must not be made again. Any other error
// means that the intent is not on the disk, and the call must not be made either.
func (j *Journal) Begin(c Call) (Ticket, *Outcome, error) {
	e := intent(c)
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if earlier, err := j.memory.replay(c, e.Digest, now); earlier != nil || err != nil {
		return Ticket{}, earlier, err
	}
	if about := subject(c); about != "" {
		j.writeRepeats(about)
	}
	seq, err := j.write(e, true)
	if err != nil {
		return Ticket{}, nil, err
	}
	j.recent.begin(seq, c, now)
	if c.Key == "" {
		return Ticket{seq: seq}, nil, nil
	}
	key := memoryKey(c.Who, c.Key)
	j.memory.put(key, &remembering{who: c.Who, seq: seq, digest: e.Digest, at: now})
	return Ticket{seq, key}, nil, nil
}

// End writes the outcome of a call, without a sync: after a loss of power it may be unknown. It
// is remembered even where the write fails.
func (j *Journal) End(t Ticket, o Outcome) error {
	o.Says = device.Clip(o.Says, maxSays)
	e := result(o)
	e.Of = t.seq
	j.recent.end(t.seq, o, time.Now())
	j.mu.Lock()
	defer j.mu.Unlock()
	if r, ok := j.memory.calls[t.key]; ok && r.seq == t.seq {
		j.memory.complete(r, o, tooLong(o))
	}
	_, err := j.write(e, false)
	if err == nil {
		j.due = true
		wake(j.work) // an anchor follows
	}
	return err
}
