package esphome

import (
	"bytes"
	"encoding/base64"
	"net"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// played is a connection on which a peer has said all that it will.
type played struct {
	net.Conn
	bytes.Reader
}

func (p *played) Read(b []byte) (int, error)       { return p.Reader.Read(b) }
func (p *played) Write(b []byte) (int, error)      { return len(b), nil }
func (p *played) SetWriteDeadline(time.Time) error { return nil }

// FuzzPeer plays what a peer sends to a client without a key and to one with one.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{0, 2, 2, 8, 1, 0, 0, 10, 0, 0, 19})
	f.Add([]byte{1, 0, 1, 1, 1, 0, 3, 1, 'M', 'A'})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1})
	f.Add([]byte{0, 0xff, 0xff, 0x7f, 2, 1})
	f.Add([]byte{0, 12, 16, 13, 1, 0, 0, 0, 26, 3, 'a', 'B', ' ', 50, 0, 0, 0, 19})
	key, err := base64.StdEncoding.DecodeString(testKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		for _, key := range [][]byte{nil, key} {
			p := &played{}
			p.Reset(sent)
			c, err := newFrames(p, key)
			if err != nil {
				continue
			}
			limit := newLimiter()
			if c.login(&limit, "") == nil {
				c.list(&limit, func(e *entity) {
					if e.id != objectID([]byte(e.id)) {
						t.Errorf("%q", e.id)
					}
				})
			}
			if cap(c.frame) > maxFrame {
				t.Errorf("a frame of %d bytes", cap(c.frame))
			}
		}
	})
}

// FuzzMessages decodes messages of each kind.
func FuzzMessages(f *testing.F) {
	f.Add(uint8(0), []byte{13, 1, 0, 0, 0, 16, 1})
	f.Add(uint8(3), []byte{13, 1, 0, 0, 0, 16, 1, 29, 0, 0, 192, 127})
	f.Add(uint8(6), []byte{13, 1, 0, 0, 0, 18, 3, 'a', 'b', 'c'})
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		k := &kinds[int(which)%len(kinds)]
		e, ok := decodeEntity(k, body)
		if ok && (len(e.id) > maxID || len(e.unit) > maxUnit) {
			t.Errorf("%+v", e)
		}
		_, _, s, _ := decodeState(k, body, func(uint32, uint32) string { return "" })
		if len(s.text) > maxText {
			t.Errorf("a text of %d bytes", len(s.text))
		}
		c := kitchenConfig()
		for _, p := range c.points() {
			if p.kinded() != k {
				continue
			}
			p.is, p.state, p.said = &e, s, 1
			p.learn(&e)
			p.command(p.Safe)
			p.stands(p.Safe)
			n := newNode(c)
			n.desc.Points = []device.Point{p.Point}
			p.read(driver.NewSample(n.desc.Points), usual)
		}
	})
}
