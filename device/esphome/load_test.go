package esphome

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/esphome/esphometest"

	"github.com/flynn/noise"
)

// TestFlood has a node that sends without end: it loses its connection, and is tried again later.
func TestFlood(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		dev := opened(t, c)
		n.Flood("switch/heater", burst+10)
		synctest.Wait()
		if _, err := dev.Sample(t.Context()); kindOfFault(err) != device.Offline || !strings.Contains(err.Error(), "200") {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Second)
		if r := sampled(t, dev)["door"]; r.Quality != device.Good {
			t.Errorf("%+v", r)
		}
	})
}

// TestManyEntities has a node with 100 entities that are all points, and is brought to safe many times.
func TestManyEntities(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		var all []*esphometest.Entity
		c.Inputs, c.Outputs = make(map[string]input), make(map[string]output)
		for i := range 100 {
			name := fmt.Sprintf("Point %d", i)
			switch point := fmt.Sprintf("point-%d", i); {
			case i < 20:
				all = append(all, &esphometest.Entity{Kind: "switch", Name: name, Device: uint32(i % 3)})
				c.Outputs[point] = output{entityKey{Entity: fmt.Sprintf("switch/point_%d", i)},
					driver.OutputPoint{Safe: device.Bool(false)}}
			default:
				all = append(all, &esphometest.Entity{Kind: "sensor", Name: name, Unit: "W", Number: float32(i),
					Device: uint32(i % 3)})
				power := driver.Quantity{Unit: "W", Range: device.Range{Max: 1000}}
				c.Inputs[point] = input{entityKey{Entity: fmt.Sprintf("sensor/point_%d", i)}, driver.InputPoint{Quantity: power}}
			}
		}
		many := esphometest.New(all...)
		many.Key = n.Key
		var serving sync.WaitGroup
		c.dial = many.Dial(&serving)
		dev := opened(t, c)
		for range 3 {
			for i := range 20 {
				if err := apply(dev, fmt.Sprintf("point-%d", i), device.Bool(false)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, r := range sampled(t, dev) {
			if r.Quality != device.Good {
				t.Errorf("%s: %s", name, r.Why)
			}
		}
		dev.Close()
		serving.Wait()
		if _, connections := many.Commands(); connections != 1 {
			t.Errorf("%d connections", connections)
		}
	})
}

// TestPaddingFloods: what fills the frames of a node counts as what it sends.
func TestPaddingFloods(t *testing.T) {
	suite := noise.NewCipherSuite(noise.DH25519, noise.CipherChaChaPoly, noise.HashSHA256)
	theirs, ours := noise.UnsafeNewCipherState(suite, [32]byte{}, 0), noise.UnsafeNewCipherState(suite, [32]byte{}, 0)
	text := make([]byte, 30<<10) // the message 21 without a body, and padding
	text[1] = 21
	var sent []byte
	const most = burstBytes/(30<<10) + 2
	for range most {
		sent = appendNoise(sent, len(text)+16)
		var err error
		if sent, err = theirs.Encrypt(sent, nil, text); err != nil {
			t.Fatal(err)
		}
	}
	p := &played{}
	p.Reset(sent)
	f := &frames{conn: p, in: bufio.NewReader(p), received: ours}
	limit := newLimiter()
	for range most {
		if _, err := f.next(&limit); err != nil {
			if err != error(errFlood) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("it is no flood")
}

// record is a connection that keeps what is written.
type record struct {
	net.Conn
	all [][]byte
}

func (w *record) Write(b []byte) (int, error) {
	runtime.Gosched() // others come meanwhile
	w.all = append(w.all, bytes.Clone(b))
	return len(b), nil
}
func (w *record) SetWriteDeadline(time.Time) error { return nil }

// TestPingOrder: the number of a ping is its place among those that were sent, so that an answer is to what came before.
func TestPingOrder(t *testing.T) {
	n, conn := &node{}, &record{}
	l := &link{frames: &frames{conn: conn}}
	var numbers [20000]uint64
	var sending sync.WaitGroup
	for i := range numbers {
		sending.Go(func() {
			numbers[i], _ = n.sendPing(l, time.Now().Add(time.Minute), message{33, []byte{byte(i >> 8), byte(i)}})
		})
	}
	sending.Wait()
	for at, b := range conn.all {
		if i := int(b[3])<<8 | int(b[4]); numbers[i] != uint64(at+1) { // after the zero, the size and the number of the message
			t.Fatalf("ping %d was sent as the %dth", numbers[i], at+1)
		}
	}
}
