// Package driver defines what a driver is: a name, the YAML that it understands and a
// function that opens a device. Drivers are values in one list, in cmd/internal/site.
package driver

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/device"
)

// Driver is one entry of the list.
type Driver struct {
	Name string // as in the YAML: "gpio-out"
	Doc  string // one line for people
	Also string // other names of its parts, in small letters, separated by spaces
	// Part returns the key that stands for a part by its name in Also, such as map: eastron-sdm72, which Entry has, too;
	// "" for none. It may be nil.
	Part func(name string) (key, value string)
	// PartKey and PartValue are, in what Named returns, the key that stands for the part.
	PartKey, PartValue string
	// Entry is the shortest entry of a device in the YAML; "" where only the driver's name is needed.
	Entry string
	Setup string // the line of a Raspberry Pi's config.txt that it needs besides those of its bus; "" for none
	Note  string // sentences about its wiring or what else it needs; mostly ""
	// Lacks has advice for keys that people look for and that it does not have.
	Lacks map[string]string
	// Config returns a pointer to a fresh configuration with its defaults set.
	// Its exported fields, with json tags, are the driver's YAML and its schema;
	// a `jsonschema:"…"` tag describes a field.
	Config func() Config
	// Instead returns what to write for a part that has no driver of its own and that this
	// entry covers; "" for any other. It may be nil.
	Instead func(part string) string
	// Of is set if Name ends with a colon and stands for a family of drivers. It makes the Config of
	// the driver that is called Name followed by member; nil for one that cannot be of the family.
	Of func(member string) Config
	// Seek finds devices of this driver that are reached by a network or by radio, until ctx ends or all have
	// answered. It reads only: nothing is paired, written or moved. It may be nil.
	Seek func(ctx context.Context) ([]Found, error)
	// Replace returns the replacement of a decoded and validated Config; named are the points of the device that the
	// configuration mentions. It is nil, except in a simulated site.
	Replace func(c Config, named []string) Config
}

// Found is a device that a Seek has found. What it says of itself is checked: Name is a valid name, and YAML
// has no text that was not.
type Found struct {
	Where string // "kitchen.local", "A4:C1:38:01:02:03"
	What  string // "ESPHome node", "Shelly BLU H&T"
	Says  string // a note or advice; may be ""
	Name  string // for the configuration
	YAML  string // its keys, in braces; "" where more has to be known first
}

// Config is a driver's part of the YAML, decoded strictly before Open.
type Config interface {
	// Open is called by the function Open, once Validate has accepted the Config. It finds the hardware and returns the
	// device. It moves no pin; the guard does, to the safe value first. A missing part is an Offline fault.
	Open(ctx context.Context) (device.Device, error)
}

// Open opens the device of c, unless Validate finds a mistake.
func Open(ctx context.Context, c Config) (device.Device, error) {
	if v, ok := c.(Validator); ok {
		if err := v.Validate(); err != nil {
			return nil, err
		}
	}
	return c.Open(ctx)
}

// Validator is a Config that can find mistakes without hardware.
type Validator interface{ Validate() error }

// Describer is a Config that knows its device's points without hardware, so that
// a check finds mistakes about them before anything is opened.
type Describer interface{ Describe() device.Description }

// Guesser is a Config whose device knows its points only once it is open. Guess returns the points that it
// probably has, with all named ones, for a fake of it.
type Guesser interface {
	Guess(named []string) device.Description
}

// Networked is a Config whose device is reached by a network or a line of others: when that is lost, its outputs stay
// as they are. Peer returns what is then the only one to switch them off, such as "kitchen.local".
type Networked interface{ Peer() string }

// Lasting is a Config whose device sends by itself what it has to say: a reading of it stays good for GoodFor without
// a new one. 0 leaves that to the configuration's every.
type Lasting interface{ GoodFor() time.Duration }

// Unencrypted is a Config that may send a secret which others in the network can read. SentTo returns the host that gets
// it, or whoever poses as it; "" for no such secret.
type Unencrypted interface{ SentTo() string }

// Stopper is a Config whose device can be an emergency stop. While the state that Stops names is
// on, or cannot be read, every output is at its safe value. A Watch that begins while it is on
// emits it. "" means no emergency stop.
type Stopper interface{ Stops() (point string) }

// Shortest returns the shortest entry of a device.
func (d Driver) Shortest() string { return cmp.Or(d.Entry, "{ driver: "+d.Name+" }") }

// Named returns the drivers of the part with that name, however its words are joined: of PIR,
// HC_SR501 or ws2812b.
func Named(drivers []Driver, part string) []Driver {
	var all []Driver
	part = joined(part)
	for _, d := range drivers {
		names := append([]string{d.Name}, strings.Fields(d.Also)...)
		i := slices.IndexFunc(names, func(name string) bool { return joined(name) == part })
		if i < 0 {
			continue
		}
		if d.Part != nil {
			d.PartKey, d.PartValue = d.Part(names[i])
		}
		if before, rest, ok := strings.Cut(d.Entry, " "+d.PartKey+": "); ok && d.PartKey != "" {
			d.Entry = before + " " + d.PartKey + ": " + d.PartValue + rest[strings.IndexAny(rest, ", }"):]
		}
		all = append(all, d)
	}
	return all
}

var joiners = strings.NewReplacer("-", "", "_", "", " ", "")

func joined(name string) string { return joiners.Replace(strings.ToLower(name)) }

// Find returns the driver with that name, also a member of a family.
func Find(drivers []Driver, name string) (Driver, bool) {
	for _, d := range drivers {
		switch member, in := strings.CutPrefix(name, d.Name); {
		case d.Of == nil && member == "" && in:
			return d, true
		case d.Of != nil && member != "" && in && d.Of(member) != nil:
			return Driver{Name: name, Doc: d.Doc, Config: func() Config { return d.Of(member) }, Replace: d.Replace}, true
		}
	}
	return Driver{}, false
}
