// Package esphometest has a fake node of ESPHome, after api.proto of esphome/esphome (API 1.14, ESPHome 2026.x)
// and its api_frame_helper_noise.cpp. It shares no code with the driver. Independent clients talk to it, too.
package esphometest

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Entity is an entity of a node and its state.
type Entity struct {
	Kind, Name     string // "switch", "Heater"
	Unit           string
	Min, Max, Step float32 // of a number
	Speeds         int     // of a fan
	Levels         bool    // of a light, a cover or a valve
	Options        []string
	Device         uint32 // its sub-device

	On      bool
	Number  float32
	Text    string
	Moving  int // 1 opens, 2 closes
	Missing bool
	Deaf    bool // it ignores commands
	Silent  bool // it tells no change
	Slow    bool // a cover or a valve: a command begins its travel only

	key uint32
}

// ID returns its kind and object ID.
func (e *Entity) ID() string {
	id := []byte(strings.ToLower(e.Name))
	for i, b := range id {
		if !(b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_') {
			id[i] = '_'
		}
	}
	return e.Kind + "/" + string(id)
}

// Node is a fake node. Its fields are set before it serves.
type Node struct {
	Name, MAC string
	Key       string // base64; "" for none
	ObjectIDs bool   // it sends object IDs, as before 2026.7

	mu       sync.Mutex
	entities []*Entity
	peers    map[*peer]bool
	frozen   bool
	commands int
	accepted int
}

// New returns a node with these entities.
func New(all ...*Entity) *Node {
	for i, e := range all {
		e.key = uint32(i)*2654435761 + 17
	}
	return &Node{Name: "kitchen", MAC: "A4:CF:12:01:02:03", entities: all, peers: make(map[*peer]bool)}
}

// Listen serves at a port of this machine until the test ends, and returns its address.
func (n *Node) Listen(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.ServeAt(t, l)
	return l.Addr().String()
}

// ServeAt serves at l until the test ends.
func (n *Node) ServeAt(t testing.TB, l net.Listener) {
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { n.Serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); n.Drop(); serving.Wait() })
}

// Dial returns a connection to the node without a network. Wait for the node with the returned group.
func (n *Node) Dial(serving *sync.WaitGroup) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, _ string) (net.Conn, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		here, there := net.Pipe()
		serving.Go(func() { n.Serve(there) })
		return here, nil
	}
}

// Set changes an entity and tells its state.
func (n *Node) Set(id string, change func(e *Entity)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.entities {
		if e.ID() == id {
			change(e)
			n.tell(e)
			return
		}
	}
	panic("no entity " + id)
}

// Get returns an entity.
func (n *Node) Get(id string) Entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.entities {
		if e.ID() == id {
			return *e
		}
	}
	panic("no entity " + id)
}

// Commands returns how many commands came, and how many connections.
func (n *Node) Commands() (commands, connections int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.commands, n.accepted
}

// Drop ends all connections, as a restart does.
func (n *Node) Drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range n.peers {
		p.conn.Close()
	}
}

// SetKey gives the node another key, for the next connection.
func (n *Node) SetKey(key string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Key = key
}

// Freeze makes the node read and say nothing, or go on.
func (n *Node) Freeze(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = on
}

// Flood sends a client so many states.
func (n *Node) Flood(id string, states int) {
	for range states {
		n.Set(id, func(*Entity) {})
	}
}

// tell sends a state to all clients. The caller holds mu.
func (n *Node) tell(e *Entity) {
	if e.Silent {
		return
	}
	for p := range n.peers {
		if p.subscribed {
			p.send(e.state())
		}
	}
}

// Serve speaks with one client until the connection ends.
func (n *Node) Serve(conn net.Conn) {
	defer conn.Close()
	p := &peer{conn: conn, queue: make(chan []byte, 1<<14), ended: make(chan struct{})}
	n.mu.Lock()
	secret := n.Key
	n.mu.Unlock()
	if secret != "" {
		key, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			panic(err)
		}
		if p.shake(n, key) != nil {
			return
		}
	}
	n.mu.Lock()
	n.peers[p] = true
	n.accepted++
	n.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(p.write)
	for {
		id, body, err := p.receive()
		if err == nil {
			err = n.answer(p, id, body)
		}
		if err != nil {
			break
		}
	}
	n.mu.Lock()
	delete(n.peers, p)
	n.mu.Unlock()
	conn.Close()
	close(p.ended)
	writing.Wait()
}

var errEnd = errors.New("the client ended it")

func (n *Node) answer(p *peer, id int, body []byte) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen {
		return nil
	}
	switch id {
	case 1: // HelloRequest
		p.send(message(2).num(1, 1).num(2, 14).text(3, n.Name+" (esphome v2026.10.0)").text(4, n.Name))
	case 5: // DisconnectRequest
		p.send(message(6))
		return errEnd
	case 7: // PingRequest
		p.send(message(8))
	case 9: // DeviceInfoRequest
		p.send(message(10).text(2, n.Name).text(3, n.MAC).text(4, "2026.10.0").text(6, "host").text(12, "fake").num(19, 1))
	case 11: // ListEntitiesRequest
		for _, e := range n.entities {
			p.send(e.listed(n.ObjectIDs))
		}
		p.send(message(19))
	case 20: // SubscribeStatesRequest: all states, now and on each change
		p.subscribed = true
		for _, e := range n.entities {
			if m := e.state(); m != nil {
				p.send(m)
			}
		}
	default:
		n.command(id, body)
	}
	return nil
}

// command does what a client commands. As ESPHome it tells a state only if it is another than before.
func (n *Node) command(id int, body []byte) {
	f := decode(body)
	for _, e := range n.entities {
		if k := layouts[e.Kind]; k.command != id || e.key != uint32(f[1]) || uint32(f[k.setDevice]) != e.Device {
			continue
		}
		n.commands++
		if e.Deaf {
			return
		}
		before := *e
		number := math.Float32frombits(uint32(f[layouts[e.Kind].set]))
		switch e.Kind {
		case "switch":
			e.On = f[2] != 0
		case "number":
			e.Number = number
		case "light":
			if f[2] != 0 {
				e.On = f[3] != 0
			}
			if f[4] != 0 && e.Levels {
				e.Number = number
			}
		case "fan":
			if f[2] != 0 {
				e.On = f[3] != 0
			}
			if f[10] != 0 {
				e.Number = float32(f[11])
			}
		case "cover", "valve":
			switch {
			case e.Slow && number > e.Number:
				e.Moving = 1
			case e.Slow && number < e.Number:
				e.Moving = 2
			default:
				e.Number = number
			}
		}
		if e.On != before.On || e.Number != before.Number || e.Moving != before.Moving {
			n.tell(e)
		}
		return
	}
}

// decode returns the numbers of a message's fields.
func decode(body []byte) map[protowire.Number]uint64 {
	all := make(map[protowire.Number]uint64)
	for len(body) > 0 {
		number, typ, n := protowire.ConsumeTag(body)
		if n < 0 {
			return all
		}
		body = body[n:]
		var fixed uint32
		switch typ {
		case protowire.VarintType:
			all[number], n = protowire.ConsumeVarint(body)
		case protowire.Fixed32Type:
			fixed, n = protowire.ConsumeFixed32(body)
			all[number] = uint64(fixed)
		default:
			n = protowire.ConsumeFieldValue(number, typ, body)
		}
		if n < 0 {
			return all
		}
		body = body[n:]
	}
	return all
}
