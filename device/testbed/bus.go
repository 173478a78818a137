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
	// Reset is a power-on: registers get their defaults. Inputs stay.
	Reset()
	// Write takes the bytes between a start condition and the next start or stop.
	Write(b []byte)
	// Read fills b with the bytes that the master reads.
	Read(b []byte)
	Part
}

// Part is an emulated part.
type Part interface {
	// SetInput sets a measured quantity, such as temperature, in the unit of its point.
	SetInput(quantity string, value float64) error
	// Outputs returns the observable state, as a value for JSON.
	Outputs() any
}

// inputs has the quantities that a part measures. Its first keys are all that can be set.
type inputs map[string]float64

func (in inputs) SetInput(quantity string, value float64) error {
	if _, ok := in[quantity]; !ok {
		return fmt.Errorf("no input %q; the part has %s", quantity, strings.Join(slices.Sorted(maps.Keys(in)), ", "))
	}
	in[quantity] = value
	return nil
}

func (in inputs) Outputs() any { return maps.Clone(in) }

// State is the state of a chip's connection to its bus.
type State string

const (
	OK           State = "ok"
	Unresponsive State = "unresponsive" // acknowledges nothing, and keeps its registers
	Absent       State = "absent"       // unplugged: returns as after power-on
	Hung         State = "hung"         // holds a line low in each transfer with it, and keeps its registers
)

// Errors of a transfer.
var (
	ErrNoAnswer = errors.New("no device acknowledged the address")
	ErrStuck    = errors.New("a line of the bus is held low")
	ErrHung     = errors.New("the chip does not end the transfer")
)

// Bus is an I2C bus with its chips. It is safe for concurrent use.
type Bus struct {
	mu       sync.Mutex
	stuck    bool
	attached map[byte]*attachment
	parts    map[string]Part
}

type attachment struct {
	chip          Chip
	state         State
	reads, writes int
}

// PartState is the state of a part that a test can inspect.
type PartState struct {
	State   State `json:"state,omitempty"`
	Reads   int   `json:"reads"`  // acknowledged transfers
	Writes  int   `json:"writes"` // with at least one byte
	Outputs any   `json:"outputs"`
}

// NewBus returns a bus without chips.
func NewBus() *Bus { return &Bus{attached: make(map[byte]*attachment), parts: make(map[string]Part)} }

// Add resets a chip and attaches it to the bus.
func (b *Bus) Add(name string, address byte, c Chip) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Reset()
	b.attached[address] = &attachment{chip: c, state: OK}
	b.parts[name] = c
}

// AddBehind registers a part that is connected through a chip of the bus.
func (b *Bus) AddBehind(name string, p Part) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[name] = p
}

// SetInput sets a quantity that a part measures.
func (b *Bus) SetInput(name, quantity string, value float64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return err
	}
	if err := p.SetInput(quantity, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Inspect returns the state of a part.
func (b *Bus) Inspect(name string) (PartState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return PartState{}, err
	}
	state := PartState{Outputs: p.Outputs()}
	if s := b.attachment(p); s != nil {
		state.State, state.Reads, state.Writes = s.state, s.reads, s.writes
	}
	return state, nil
}

// SetState breaks or restores a chip's connection.
func (b *Bus) SetState(name string, to State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.part(name)
	if err != nil {
		return err
	}
	s := b.attachment(p)
	switch {
	case s == nil:
		return fmt.Errorf("%s is not attached to the bus itself", name)
	case to != OK && to != Unresponsive && to != Absent && to != Hung:
		return fmt.Errorf("unknown state %q; write %s, %s, %s or %s", to, OK, Unresponsive, Absent, Hung)
	case s.state == Absent && to != Absent:
		s.chip.Reset()
	}
	s.state = to
	return nil
}

// SetStuck holds a line of the bus low, or releases it.
func (b *Bus) SetStuck(stuck bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stuck = stuck
}

func (b *Bus) part(name string) (Part, error) {
	if p, ok := b.parts[name]; ok {
		return p, nil
	}
	return nil, fmt.Errorf("no part %q; the board has %s", name, strings.Join(slices.Sorted(maps.Keys(b.parts)), ", "))
}

func (b *Bus) attachment(p Part) *attachment {
	for _, s := range b.attached {
		if Part(s.chip) == p {
			return s
		}
	}
	return nil
}

// aliased is a chip that has a second address.
type aliased interface{ AlsoAt(address byte) bool }

// generalCall is the address of UM10204, section 3.1.13.
const generalCall = 0x00

type generalCaller interface{ GeneralCall(b []byte) }

// acknowledging returns the chips that acknowledge an address.
func (b *Bus) acknowledging(address byte) (all []*attachment, err error) {
	if b.stuck {
		return nil, ErrStuck
	}
	if s := b.attached[address]; s != nil && s.state == Hung {
		return nil, ErrHung
	}
	for at, s := range b.attached {
		alias, _ := s.chip.(aliased)
		_, general := s.chip.(generalCaller)
		if s.state == OK && (at == address || alias != nil && alias.AlsoAt(address) || address == generalCall && general) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, ErrNoAnswer
	}
	return all, nil
}

// Write is one write transfer. Without bytes it only tests whether a chip acknowledges.
func (b *Bus) Write(address byte, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.acknowledging(address)
	if err != nil || len(data) == 0 {
		return err
	}
	for _, s := range all {
		s.writes++
		if address == generalCall {
			s.chip.(generalCaller).GeneralCall(data)
			continue
		}
		s.chip.Write(data)
	}
	return nil
}

// Read is one read transfer. The bytes of several chips are ANDed, as on an open-drain line.
func (b *Bus) Read(address byte, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, err := b.acknowledging(address)
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
