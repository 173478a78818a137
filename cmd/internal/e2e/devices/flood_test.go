//go:build e2e && linux

package devices

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestFloodDelaysNobody: while a broker sends as much as it can to a driver in the guard's process, which has real-time
// priority, nine other outputs are returned to safe in time.
func TestFloodDelaysNobody(t *testing.T) {
	const relays, length = 9, 250 * time.Millisecond
	b := startBroker(t)
	var devices strings.Builder
	dir, err := os.MkdirTemp("/dev/shm", "relays") // a pin does not wait for a disk
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for i := range relays {
		fmt.Fprintf(&devices, "  r%d: { driver: sim, model: relay, min_off: 0s, max_on: 1h, outputs_file: %s/%[1]d }\n", i,
			dir)
	}
	fmt.Fprintf(&devices, "  far: { driver: mqtt, broker: \"mqtt://%s\", min_off: 0s, outputs: { relay: { topic: x/state, set: x/set, safe: off } } }\n", b.listen.Addr())
	r := harness.Start(t, "site: { name: relays }\ndevices:\n"+devices.String(),
		harness.Need(t, "the program", harness.Program))
	defer r.Stop(t)
	move := func(output string, length time.Duration) error {
		_, answer := r.Post(t, harness.ToolCall("switch_output", fmt.Sprintf(`{"output":"%s","on":true,"for_seconds":%v}`, output, length.Seconds())), "Mcp-Name", "switch_output")
		if strings.Contains(answer, `"error":`) || strings.Contains(answer, `"isError":true`) {
			return fmt.Errorf("%s: %s", output, answer)
		}
		return nil
	}
	harness.WaitFor(t, 30*time.Second, "the output at the end of the network is moved", func() bool {
		return move("far/relay", time.Minute) == nil && b.on.Load()
	})

	b.floods.Store(true)
	harness.CheckDeadline(t, 20*time.Millisecond, func() time.Duration {
		var late []time.Duration
		var mu sync.Mutex
		var asking sync.WaitGroup
		for i := range relays {
			asking.Go(func() {
				witness := filepath.Join(dir, strconv.Itoa(i))
				for range harness.Workload(10, 500) {
					if err := move(fmt.Sprintf("r%d/relay", i), length); err != nil {
						t.Error(err)
					}
					value, begun := harness.ReadWitness(witness)
					for value == "on" { // else it was over before this looked, which has no priority
						var at time.Time
						if value, at = harness.ReadWitness(witness); value == "off" {
							mu.Lock()
							late = append(late, at.Sub(begun)-length)
							mu.Unlock()
						}
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
		asking.Wait()
		if len(late) < relays*5 {
			t.Fatalf("the end of %d leases was seen", len(late))
		}
		worst := slices.Max(late)
		t.Logf("%d leases beside a flood of %d MB over %d connections: late by at most %v", len(late), b.sent.Load()>>20,
			b.connections.Load(), worst.Round(10*time.Microsecond))
		return worst
	})
	if b.sent.Load() < 64<<10 {
		t.Errorf("the flood was %d bytes only", b.sent.Load())
	}
	if n := b.connections.Load(); n > 60 {
		t.Errorf("a broker that floods was connected to %d times", n)
	}
}

// broker is a small MQTT broker with relays at NAME/set and NAME/state, which are one, until it floods.
type broker struct {
	listen      net.Listener
	on, floods  atomic.Bool
	sent        atomic.Int64 // bytes of the flood
	connections atomic.Int64
}

func startBroker(t testing.TB) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveBroker(t, l)
}

func serveBroker(t testing.TB, l net.Listener) *broker {
	b := &broker{listen: l}
	var serving sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.connections.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			serving.Go(func() { b.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return b
}

// serve serves a client, and floods it once it has subscribed and the broker floods.
func (b *broker) serve(c net.Conn) {
	defer c.Close()
	in, done := bufio.NewReader(c), make(chan struct{})
	defer close(done)
	var writing sync.Mutex
	send := func(p ...byte) {
		writing.Lock()
		defer writing.Unlock()
		c.Write(p)
	}
	v5, flooding := false, false
	publish := func(topic, payload string, retain byte) []byte {
		body := binary.BigEndian.AppendUint16(nil, uint16(len(topic)))
		body = append(body, topic...)
		if v5 {
			body = append(body, 0)
		}
		body = append(body, payload...)
		return append([]byte{0x30 | retain, byte(len(body))}, body...)
	}
	state := func(of string, retain byte) {
		send(publish(of+"/state", map[bool]string{true: "ON", false: "OFF"}[b.on.Load()], retain)...)
	}
	for {
		first, err := in.ReadByte()
		if err != nil {
			return
		}
		n, err := binary.ReadUvarint(in)
		if err != nil || n > 1<<16 {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		switch first >> 4 {
		case 1: // CONNECT
			if v5 = body[6] == 5; v5 {
				send(0x20, 3, 0, 0, 0)
			} else {
				send(0x20, 2, 0, 0)
			}
		case 3: // PUBLISH
			length := 2 + int(binary.BigEndian.Uint16(body))
			topic, rest := string(body[2:length]), body[length:]
			if first&0x06 != 0 {
				send(0x40, 2, rest[0], rest[1])
				rest = rest[2:]
			}
			if v5 {
				rest = rest[1+int(rest[0]):]
			}
			if of, ok := strings.CutSuffix(topic, "/set"); ok {
				b.on.Store(bytes.Equal(rest, []byte("ON")))
				state(of, 0)
			}
		case 8: // SUBSCRIBE
			answer, rest := slices.Clone(body[:2]), body[2:]
			if v5 {
				answer, rest = append(answer, 0), rest[1+int(rest[0]):]
			}
			var states []string
			for len(rest) > 2 {
				end := 2 + int(binary.BigEndian.Uint16(rest))
				if of, ok := strings.CutSuffix(string(rest[2:end]), "/state"); ok {
					states = append(states, of)
				}
				rest, answer = rest[end+1:], append(answer, 0)
			}
			send(append([]byte{0x90, byte(len(answer))}, answer...)...)
			for _, of := range states {
				state(of, 1)
			}
		case 12: // PINGREQ
			send(0xd0, 0)
		case 14:
			return
		}
		if !flooding {
			flooding = true
			go func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if !b.floods.Load() {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					many := bytes.Repeat(publish("x/state", "ON", 0), 1000)
					writing.Lock()
					n, err := c.Write(many)
					writing.Unlock()
					if b.sent.Add(int64(n)); err != nil {
						return
					}
				}
			}()
		}
	}
}
