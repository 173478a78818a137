package events

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/history"
)

// maxPoints bounds the points of a request, and with them its cursor.
const maxPoints = 64

// state is the content of a cursor: the place in the records, and what the events after it depend on.
type state struct {
	run    uint64 // of the process
	number uint64 // of the next entry of the ring
	replay uint16 // events of the pages before, of which each said that there are more
	quiet  uint8  // pages before, one after the other, without an event
	met    bool   // a condition was true, and Until has not been since
	// recorded time since when a condition is true that is not met yet, or of a change that waits; 0 for none
	since int64
	told  int64  // recorded time of the last change of a state that was told
	slots []slot // of the points, in the order of the request
}

// slot is the place of a point, and its value there.
type slot struct {
	point string
	history.Mark
	value device.Value // none where it is not known
	made  int64        // its recorded time
	held  bool         // an output that somebody holds
}

const (
	headBytes = 1 + 8 + 8 + 2 + 1 + 1 + 8 + 8
	slotBytes = 4 + 4 + 8 + 2 + 1 + 8 + 8
	maxCursor = (headBytes+maxPoints*slotBytes+28)*4/3 + 4
	format    = 1
)

var errCursor = errors.New("a cursor of another event, caller or site")

// sealer encrypts cursors: they hold values, and permissions decide who reads those.
type sealer struct{ cipher.AEAD }

func newSealer(secret string) sealer {
	key := sha256.Sum256([]byte("cursors of MCP events\x00" + secret))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealer{aead}
}

// bound returns the data that a cursor is bound to.
func (p *plan) bound() []byte {
	return append([]byte(p.who.ID+"\x00"+p.name+"\x00"), p.canonical...)
}

func tag(point string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(point))
	return h.Sum32()
}

func (s sealer) close(p *plan, st *state) string {
	b := make([]byte, 0, headBytes+len(st.slots)*slotBytes)
	b = binary.BigEndian.AppendUint64(append(b, format), st.run)
	b = binary.BigEndian.AppendUint64(b, st.number)
	b = binary.BigEndian.AppendUint16(b, st.replay)
	b = append(b, st.quiet, bit(st.met))
	b = binary.BigEndian.AppendUint64(b, uint64(st.since))
	b = binary.BigEndian.AppendUint64(b, uint64(st.told))
	for i := range st.slots {
		x := &st.slots[i]
		b = binary.BigEndian.AppendUint32(b, tag(x.point))
		b = binary.BigEndian.AppendUint32(b, x.Run)
		b = binary.BigEndian.AppendUint64(b, uint64(x.At))
		b = binary.BigEndian.AppendUint16(b, x.N)
		n := x.value.Number()
		if x.value.Type() == device.TypeBool {
			n = float64(bit(x.value.Bool()))
		}
		if x.value.Type() == device.TypeText {
			n = float64(tag(x.value.Text()))
		}
		b = append(b, byte(x.value.Type())<<1|bit(x.held))
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(n))
		b = binary.BigEndian.AppendUint64(b, uint64(x.made))
	}
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, b, p.bound()))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// open returns the state of a cursor. A point that it does not have has no slot.
func (s sealer) open(p *plan, cursor string) (st state, err error) {
	if len(cursor) > maxCursor {
		return st, errCursor
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return st, errCursor
	}
	b, err := s.Open(nil, nil, sealed, p.bound())
	if err != nil || len(b) < headBytes || b[0] != format || (len(b)-headBytes)%slotBytes != 0 {
		return st, errCursor
	}
	st.run, st.number = binary.BigEndian.Uint64(b[1:]), binary.BigEndian.Uint64(b[9:])
	st.replay, st.quiet, st.met = binary.BigEndian.Uint16(b[17:]), b[19], b[20] != 0
	st.since, st.told = int64(binary.BigEndian.Uint64(b[21:])), int64(binary.BigEndian.Uint64(b[29:]))
	for b = b[headBytes:]; len(b) > 0; b = b[slotBytes:] {
		for _, of := range p.points {
			if tag(of.Point) != binary.BigEndian.Uint32(b) {
				continue
			}
			x := slot{point: of.Point, held: b[18]&1 != 0}
			x.Run, x.At = binary.BigEndian.Uint32(b[4:]), int64(binary.BigEndian.Uint64(b[8:]))
			x.N = binary.BigEndian.Uint16(b[16:])
			x.value = value(device.Type(b[18]>>1), math.Float64frombits(binary.BigEndian.Uint64(b[19:])), of)
			x.made = int64(binary.BigEndian.Uint64(b[27:]))
			st.slots = append(st.slots, x)
			break
		}
	}
	return st, nil
}

// value returns a value of a cursor. A text is known by its tag among the texts that the point can have.
func value(t device.Type, n float64, of agents.Point) (v device.Value) {
	switch t {
	case device.TypeNumber:
		v = device.Number(n)
	case device.TypeBool:
		v = device.Bool(n != 0)
	case device.TypeText:
		for _, text := range of.Values {
			if float64(tag(text)) == n {
				v = device.Text(text)
			}
		}
	}
	return v
}

// pause returns after what time it is worth to poll again, where it changes something at all after base. The longer
// nothing has happened, the longer it is: each poll wakes the board.
func (st *state) pause(base time.Duration, events int) time.Duration {
	if events > 0 {
		st.quiet = 0
	} else if st.quiet < math.MaxUint8 {
		st.quiet++
	}
	return max(base, min(base*time.Duration(max(1, st.quiet)), quietPoll))
}
