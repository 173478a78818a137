package esphome

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan"
)

const (
	service   = "_esphomelib._tcp"
	maxSought = 64 // nodes that a Seek returns
	asking    = 6  // of them at the same time
)

// entities are those of a node.
type entities []*entity

// survey asks a node for its entities.
func survey(ctx context.Context, dial dialer, target string, key []byte, mac string) (all entities, err error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	f, err := open(ctx, dial, target, key)
	if err != nil {
		return nil, err
	}
	defer f.conn.Close()
	defer context.AfterFunc(ctx, func() { f.conn.Close() })()
	limit := newLimiter()
	if err := f.login(&limit, mac); err != nil {
		return nil, err
	}
	err = f.list(&limit, func(e *entity) { all = append(all, e) })
	f.send(time.Now().Add(100*time.Millisecond), message{id: disconnectRequest})
	return all, err
}

// points returns the sensors and binary sensors as inputs, with names that are valid, and the YAML of them. There are
// at most maxPoints, without those of an unknown unit.
func (all entities) points() (inputs map[string]input, yaml string) {
	inputs = make(map[string]input)
	var lines []string
	var names driver.Names
	for _, e := range all {
		in := input{entityKey: entityKey{Entity: e.address()}}
		text := ""
		switch code, known := unitOf(e.unit); {
		case len(inputs) == maxPoints:
			continue
		case e.kind.name == "binary_sensor":
			in.State, text = true, "state: on"
		case e.kind.name == "sensor" && known:
			in.Unit, in.Range = code, rangeOf(code)
			text = "range: " + in.Range.String()
			if code != "" {
				text = fmt.Sprintf("unit: %q, %s", code, text)
			}
		default:
			continue
		}
		name := names.New(e.id, "sensor")
		inputs[name] = in
		lines = append(lines, fmt.Sprintf("%s: { entity: %s, %s }", name, in.Entity, text))
	}
	slices.Sort(lines)
	return inputs, "{ " + strings.Join(lines, ", ") + " }"
}

// outputs returns how to write the entities that can be outputs; "" for none.
func (all entities) outputs() string {
	var lines []string
	for _, e := range all {
		if e.kind.command != 0 && len(lines) < 12 {
			lines = append(lines, e.address())
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ", such as outputs: { NAME: { entity: " + lines[0] + ", safe: off } }; it has " + strings.Join(lines, ", ")
}

// seek finds nodes by mDNS, and asks those without a key for their entities.
func seek(ctx context.Context) ([]driver.Found, error) {
	looking := ctx
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		looking, cancel = context.WithTimeout(ctx, time.Until(until)/2)
		defer cancel()
	}
	nodes, err := lan.Browse(looking, service)
	if err != nil {
		return nil, err
	}
	nodes = nodes[:min(len(nodes), maxSought)]
	found := make([]driver.Found, len(nodes))
	places := make(chan struct{}, asking)
	var wait sync.WaitGroup
	for i, is := range nodes {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			found[i] = seen(ctx, is, lan.Dial)
		})
	}
	wait.Wait()
	return slices.DeleteFunc(found, func(f driver.Found) bool { return f.Where == "" }), nil
}

// seen makes the finding of a node that advertises itself. It checks the names that the node sends.
func seen(ctx context.Context, is lan.Instance, dial dialer) driver.Found {
	host := strings.TrimSuffix(strings.ToLower(is.Host), ".")
	if host == "" || len(host) > 100 || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return driver.Found{}
	}
	c := config{Address: host}
	if is.Port != 0 && fmt.Sprint(is.Port) != port {
		c.Address = net.JoinHostPort(host, fmt.Sprint(is.Port))
	}
	first, _, _ := strings.Cut(host, ".")
	f := driver.Found{Where: c.Address, What: "ESPHome node", Name: device.SuggestName(first)}
	if f.Name == "" {
		f.Name = "esphome"
	}
	pinned := ""
	if m := mac(is.Text["mac"]); m != "" {
		pinned = fmt.Sprintf(", mac: %q", colons(m))
	}
	if is.Text["api_encryption"] != "" {
		f.YAML = fmt.Sprintf("{ driver: esphome, address: %q, key_file: %s.key%s }", c.Address, f.Name, pinned)
		f.Says = "it has a key: copy that of its api: encryption: into the file " + f.Name + ".key beside the configuration; " +
			"its sensors are points then, and its outputs have to be written"
		return f
	}
	all, err := survey(ctx, dial, c.target(), nil, is.Text["mac"])
	if err != nil {
		f.Says = c.offline(err).Error()
		return f
	}
	if inputs, yaml := all.points(); len(inputs) > 0 {
		f.YAML = fmt.Sprintf("{ driver: esphome, address: %q, plaintext: on%s, inputs: %s }",
			c.Address, pinned, yaml)
	}
	f.Says = "it has no key, so that anybody in the network can read and move it"
	if out := all.outputs(); out != "" {
		f.Says += "; its outputs have to be written" + out
	}
	return f
}

// colons writes the digits of a MAC address as people do.
func colons(digits string) string {
	var parts []string
	for pair := range slices.Chunk([]byte(digits), 2) {
		parts = append(parts, string(pair))
	}
	return strings.Join(parts, ":")
}
