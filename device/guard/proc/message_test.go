package proc

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/guard"
)

// TestOtherVersion: a guard of another program is refused.
func TestOtherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, its := net.Pipe()
		k := NewKeeper([]guard.Policy{{Output: relayName}}, guard.Latch{}, func() (Process, error) {
			return Process{Conn: ours, Kill: func() {}, Wait: func() error { return nil }}, nil
		})
		go func() {
			l := newLink(its)
			l.send(hello, 0, func(w *writer) { w.uint32(version + 1) })
		}()
		_, answered, err := k.life(t.Context())
		if err == nil || answered || !strings.Contains(err.Error(), "another version") {
			t.Error(err)
		}
	})
}

// tape is a connection on which everything has been said already.
type tape struct {
	io.Reader
	mu  sync.Mutex
	out []byte
}

func (t *tape) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out = append(t.out, b...)
	return len(b), nil
}

func (*tape) Close() error { return nil }

// FuzzMessages: whatever stands on the connection, both ends come back with an error,
// and no output is moved by what is damaged.
func FuzzMessages(f *testing.F) {
	for _, say := range []func(l *link){
		func(l *link) { l.send(beat, 1, nil) },
		func(l *link) {
			l.send(move, 2, func(w *writer) {
				w.uint32(0)
				w.duration(0)
				w.text("ann")
				w.text(relayName)
				w.value(device.Bool(true))
				w.duration(time.Second)
			})
		},
		func(l *link) { l.send(sample, 3, func(w *writer) { w.text("box") }) },
		func(l *link) {
			l.send(simulate, 4, func(w *writer) {
				w.text("box")
				w.reading(device.Reading{Point: "t", Value: device.Number(3), Quality: device.Good})
			})
		},
		func(l *link) { l.send(hello, 0, func(w *writer) { w.uint32(version) }) },
		func(l *link) {
			l.send(state, 0, func(w *writer) {
				w.uint32(1)
				w.bool(true)
				w.uint32(1)
				w.status(guard.Status{Output: relayName, Value: device.Number(3), Holder: "ann"})
			})
		},
		func(l *link) {
			l.send(answer, 1, func(w *writer) {
				w.fault(device.Faultf(device.Busy, "not now, %s", "ann").Naming("not now", "ann").In(time.Second))
			})
		},
	} {
		said := &tape{}
		say(newLink(said))
		f.Add(said.out)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		synctest.Test(t, func(t *testing.T) {
			b := &box{}
			g, err := guard.New([]guard.Actuated{{Actuator: b, Policies: []guard.Policy{guard.NewPolicy("box", b.Describe().Points[0])}}}, guard.Latch{File: "/nowhere/armed"})
			if err != nil {
				t.Fatal(err)
			}
			Serve(t.Context(), &tape{Reader: strings.NewReader(string(text))}, g, Equipment{Devices: map[string]device.Device{"box": b}})
			k := NewKeeper([]guard.Policy{{Output: relayName}}, guard.Latch{}, nil)
			k.calls[1] = &call{done: make(chan error, 1), read: func(r *reader) { r.status() }, reading: func(device.Reading) {}}
			k.listen(newLink(&tape{Reader: strings.NewReader(string(text))}), make(chan struct{}, 1))
			if b.isOn() {
				t.Error("it moved")
			}
		})
	})
}
