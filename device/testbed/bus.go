package testbed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Chip is a part on an I2C bus. The bus calls it from one goroutine at a time.
type Chip interface {
	// Reset is power-on: registers have their defaults. What the chip was told of
	// the world stays.
	Reset()
	// Write is what a master writes between a start and the next start or stop.
	Write(b []byte)
	// Read fills b with what a master reads.
	Read(b []byte)
	Part
}

// Part is a thing that can be told of the world around it and looked at.
type Part interface {
	// Tell sets one quantity, such as temperature, in the unit of the point that
	// measures it.
	Tell(what string, value float64) error
	// Show is what an observer sees of it, fit for JSON.
	Show() any
}

// told is what a part is told of the world, by name; a part knows the names that it
// begins with.
type told map[string]float64

func (t told) Tell(what string, value float64) error {
	if _, ok := t[what]; !ok {
		return fmt.Errorf("it cannot be told %q; it can be told %s", what, strings.Join(slices.Sorted(maps.Keys(t)), ", "))
	}
	t[what] = value
	return nil
}

func (t told) Show() any { return maps.Clone(t) }

// State is how a chip stands on its bus.
type State string

const (
	OK     State = "ok"
	Deaf   State = "deaf"   // it acknowledges nothing, and forgets nothing
	Absent State = "absent" // unplugged: it comes back as from power-on
)

// Errors of a transfer.
var (
	ErrNoAnswer = errors.New("nobody acknowledged the address")
	ErrStuck    = errors.New("a line of the bus is held low")
)

// Bus is an I2C bus and what is on it. It is safe for concurrent use.
type Bus struct {
	mu    sync.Mutex
	stuck bool
	sites map[byte]*site
	parts map[string]Part
}

type site struct {
	chip          Chip
	state         State
	reads, writes int
}

// Seen is what an observer sees of a part.
type Seen struct {
	State  State `json:"state,omitempty"`
	Reads  int   `json:"reads"`  // transfers that it acknowledged
	Writes int   `json:"writes"` // of one byte and more
	Shows  any   `json:"shows"`
}

// NewBus is a bus with nothing on it.
func NewBus() *Bus { return &Bus{sites: make(map[byte]*site), parts: make(map[string]Part)} }

// Add puts a chip on the bus, fresh from power-on.
func (b *Bus) Add(name string, address byte, c Chip) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Reset()
	b.sites[address] = &site{chip: c, state: OK}
	b.parts[name] = c
}

// AddBehind names a part that is behind a chip of the bus.
func (b *Bus) AddBehind(name string, p Part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[name] = p
}

// Tell tells a part of the world around it.
func (b *Bus) Tell(name, what string, value float64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return err
	}
	if err := p.Tell(what, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Look is what an observer sees of a part.
func (b *Bus) Look(name string) (Seen, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return Seen{}, err
	}
	seen := Seen{Shows: p.Show()}
	if s := b.site(p); s != nil {
		seen.State, seen.Reads, seen.Writes = s.state, s.reads, s.writes
	}
	return seen, nil
}

// SetState breaks a chip's connection, or mends it.
func (b *Bus) SetState(name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return err
	}
	s := b.site(p)
	switch {
	case s == nil:
		return fmt.Errorf("%s is not on the bus itself", name)
	case to != OK && to != Deaf && to != Absent:
		return fmt.Errorf("a chip is %s, %s or %s, not %q", OK, Deaf, Absent, to)
	case s.state == Absent && to != Absent:
		s.chip.Reset()
	}
	s.state = to
	return nil
}

// SetStuck holds a line of the bus low, or lets it go.
func (b *Bus) SetStuck(stuck bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stuck = stuck
}

func (b *Bus) part(name string) (Part, error) {
	if p, ok := b.parts[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("there is no %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(b.parts)), ", "))
}

func (b *Bus) site(p Part) *site {
	for _, s := range b.sites {
		if Part(s.chip) == p {
			return s
		}
	}
	return nil
}

// caller is a chip that also answers at an address that all of its kind have.
type caller interface{ AlsoAt(address byte) bool }

// general is the address that every chip hears and that some understand
// (UM10204, section 3.1.13).
const general = 0x00

type generalCaller interface{ GeneralCall(b []byte) }

// answering are those that acknowledge an address.
func (b *Bus) answering(address byte) (all []*site, err error) {
	if b.stuck {
		return nil, ErrStuck
	}
	for at, s := range b.sites {
		also, _ := s.chip.(caller)
		_, hears := s.chip.(generalCaller)
		if s.state == OK && (at == address || also != nil && also.AlsoAt(address) || address == general && hears) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, ErrNoAnswer
	}
	return all, nil
}

// Write is one write. Without any bytes it only asks who is there.
func (b *Bus) Write(address byte, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.answering(address)
	if err != nil || len(data) == 0 {
		return err
	}
	for _, s := range all {
		s.writes++
		if address == general {
			s.chip.(generalCaller).GeneralCall(data)
			continue
		}
		s.chip.Write(data)
	}
	return nil
}

// Read is one read. Where several answer, a line is low when one of them pulls it.
func (b *Bus) Read(address byte, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.answering(address)
	if err != nil {
		return err
	}
	for i := range data {
		data[i] = 0xff
	}
	for _, s := range all {
		s.reads++
		one := make([]byte, len(data))
		s.chip.Read(one)
		for i := range data {
			data[i] &= one[i]
		}
	}
	return nil
}
