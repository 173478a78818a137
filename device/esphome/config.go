package esphome

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

const (
	port      = "6053"
	keySize   = 32
	maxPoints = 100
	usual     = 10 * time.Minute // fresh, where it is not written
)

// config is the YAML of a node:
//
//	kitchen:
//	  driver: esphome
//	  address: kitchen.local
//	  key_file: kitchen.key
//	  inputs: { temperature: { entity: sensor/temperature, unit: Cel, range: -40..85 } }
//	  outputs: { heater: { entity: switch/heater, safe: off } }
//
// Without inputs and outputs its points are the sensors and binary sensors that it has when it is opened.
type config struct {
	Address   string            `json:"address" jsonschema:"the node's name or IP address, such as kitchen.local; with :port if it is not 6053"`
	KeyFile   driver.File       `json:"key_file,omitempty" jsonschema:"the file with the key of the node's api: encryption:, in base64"`
	Plaintext bool              `json:"plaintext,omitempty" jsonschema:"on for a node without a key: anybody in the network can read and forge what it says"`
	MAC       string            `json:"mac,omitempty" jsonschema:"the node's MAC address; another node under the same name is a fault then"`
	Fresh     time.Duration     `json:"fresh,omitempty" jsonschema:"the longest time between two values of a sensor, 1s to 168h; 10m when not written"`
	Inputs    map[string]input  `json:"inputs,omitempty" jsonschema:"the entities that are read, each with a name of yours"`
	Outputs   map[string]output `json:"outputs,omitempty" jsonschema:"the entities that move something, each with a name of yours"`

	dial dialer // nil: lan.Dial
}

// dialer connects to "host:port".
type dialer = func(ctx context.Context, address string) (net.Conn, error)

type entityKey struct {
	Entity   string `json:"entity" jsonschema:"its kind and object ID, such as sensor/temperature or switch/heater"`
	NodeUnit string `json:"node_unit,omitempty" jsonschema:"with scale or offset: the unit as the node writes it, such as kWh"`
}

type input struct {
	entityKey
	driver.InputPoint
}

type output struct {
	entityKey
	driver.OutputPoint
}

func newConfig() driver.Config { return &config{Fresh: usual} }

// Validate finds mistakes without the node.
func (c *config) Validate() error {
	switch {
	case c.Address == "":
		return device.Faultf(device.Invalid, "address: it is missing; write the node's name, such as kitchen.local; "+
			"agentsite scan finds nodes")
	case len(c.Address) > 255 || strings.ContainsAny(c.Address, " /@?#\\"):
		return device.Faultf(device.Invalid, "address: %.60q is none; write a name or an IP address, such as kitchen.local",
			c.Address)
	case !isPort(c.target()):
		return device.Faultf(device.Invalid, "address: %.60q has no port from 1 to 65535; remove it, for 6053", c.Address)
	case c.KeyFile == "" && !c.Plaintext:
		return device.Faultf(device.Invalid, "key_file: it is missing; write the file with the key of the node's "+
			"api: encryption:, or plaintext: on if it has no key")
	case c.KeyFile != "" && c.Plaintext:
		return device.Faultf(device.Invalid, "plaintext: a node with a key needs none; remove plaintext or key_file")
	case c.MAC != "" && mac(c.MAC) == "":
		return device.Faultf(device.Invalid, "mac: %.40q is none; write it as A4:CF:12:01:02:03", c.MAC)
	case c.Fresh < time.Second || c.Fresh > 7*24*time.Hour:
		return device.Faultf(device.Invalid, "fresh: %v is not 1s to 168h", c.Fresh)
	case len(c.Inputs)+len(c.Outputs) > maxPoints:
		return device.Faultf(device.Invalid, "inputs: %d points are too many; write at most %d",
			len(c.Inputs)+len(c.Outputs), maxPoints)
	}
	moved := make(map[string]string)
	for _, p := range c.points() {
		if err := p.validate(); err != nil {
			return err
		}
		if other, ok := moved[p.entity]; ok && p.output {
			return device.Faultf(device.Invalid, "%s.entity: %s moves it already; an entity has one output", p.key, other)
		}
		if p.output {
			moved[p.entity] = p.key
		}
	}
	return c.Describe().Validate()
}

// GoodFor returns how long a sensor of the node may be silent.
func (c *config) GoodFor() time.Duration { return c.Fresh }

// Describe needs no node.
func (c *config) Describe() device.Description {
	d := device.Description{Model: "ESPHome node"}
	for _, p := range c.points() {
		d.Points = append(d.Points, p.Point)
	}
	return d
}

// Peer returns the node's address: nothing else can move its outputs while the network is lost.
func (c *config) Peer() string { return c.Address }

// Resources lists what its outputs move: two devices that move one entity would each take the other for a stranger.
func (c *config) Resources() []driver.Resource {
	var all []driver.Resource
	for _, p := range c.points() {
		if p.output {
			all = append(all, driver.Resource{Name: strings.ToLower(c.target()) + " " + p.entity, Elsewhere: true})
		}
	}
	return all
}

// Open connects to the node. One that is being connected when ctx ends is a device already: the guard, which waits
// for 2 s, would otherwise begin again and again with a slow one.
func (c *config) Open(ctx context.Context) (device.Device, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	use := *c
	if len(c.Inputs)+len(c.Outputs) == 0 {
		found, err := survey(ctx, c.dialer(), c.target(), key, c.MAC)
		if err != nil {
			return nil, c.offline(err)
		}
		if use.Inputs, _ = found.points(); len(use.Inputs) == 0 {
			return nil, device.Faultf(device.Invalid, "%s has no sensors; write its outputs%s", c.Address, found.outputs())
		}
	}
	n := newNode(&use)
	if _, err := n.ready(ctx, false); err != nil && !n.connecting() {
		n.end()
		return nil, err
	}
	return n, nil
}

func (c *config) dialer() dialer {
	if c.dial == nil {
		return lan.Dial
	}
	return c.dial
}

func (c *config) target() string {
	if host, p, err := net.SplitHostPort(c.Address); err == nil && host != "" && p != "" {
		return c.Address
	}
	return net.JoinHostPort(strings.Trim(c.Address, "[]"), port)
}

// isPort reports whether the port of "host:port" is one.
func isPort(address string) bool {
	_, p, _ := net.SplitHostPort(address)
	n, err := strconv.ParseUint(p, 10, 16)
	return err == nil && n != 0
}

// key returns the key; nil for a node without one.
func (c *config) key() ([]byte, error) {
	if c.Plaintext {
		return nil, nil
	}
	text, err := c.KeyFile.Secret()
	if err != nil {
		return nil, device.Faultf(device.Offline, "key_file: %w; write the key of the node's api: encryption: into it", err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != keySize {
		return nil, device.Faultf(device.Invalid, "key_file: %s has no key of 32 bytes in base64; copy the one of the "+
			"node's "+
			"api: encryption:", c.KeyFile)
	}
	return key, nil
}

// mac returns the 12 digits of a MAC address; "" if it is none.
func mac(text string) string {
	digits := strings.ToUpper(strings.NewReplacer(":", "", "-", "").Replace(text))
	if _, err := strconv.ParseUint(digits, 16, 48); err != nil || len(digits) != 12 {
		return ""
	}
	return digits
}

// point holds a point of a node and the state of its entity.
type point struct {
	device.Point
	driver.Quantity
	key      string // as in the YAML: "inputs.temperature"
	entity   string // as in the YAML: "sensor/temperature"
	nodeUnit string
	output   bool

	// under node.mu:
	is      *entity      // nil while it is not known
	lacks   string       // why it is not known, or not as the YAML has it
	state   state        // valid if said is not 0
	said    uint64       // the number of the message with the state
	at      time.Time    // when it was received
	applied device.Value // what Apply has confirmed last; zero for nothing
	travel  time.Time    // when it was applied
}

// points lists the outputs and then the inputs, by name.
func (c *config) points() []*point {
	var all []*point
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o := c.Outputs[name]
		all = append(all, &point{Point: o.Point(name), Quantity: o.Quantity, key: "outputs." + name, entity: o.Entity,
			nodeUnit: o.NodeUnit, output: true})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		i := c.Inputs[name]
		all = append(all, &point{Point: i.Point(name), Quantity: i.Quantity, key: "inputs." + name, entity: i.Entity,
			nodeUnit: i.NodeUnit})
	}
	for _, p := range all {
		p.Description = cmp.Or(p.Description, p.entity)
	}
	return all
}

// scaled reports whether the number is converted.
func (p *point) scaled() bool { return p.Scale != nil || p.Offset != 0 }

// kinded returns the kind of the point's entity; nil for an unknown one.
func (p *point) kinded() *kind {
	name, id, _ := strings.Cut(p.entity, "/")
	if id == "" || id != objectID([]byte(id)) {
		return nil
	}
	return kindOf(func(k *kind) bool { return k.name == name })
}
