package testbed

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
)

// ReportSize is the length in bytes of each report to and from an MCP2221.
const ReportSize = 64

// MCP2221 emulates the reports of Microchip's bridge from USB to I2C (DS20005565, section
// 3.1). Each transfer completes at once, so that it is never busy. Its four pins are inputs.
type MCP2221 struct {
	bus       *Bus
	engine    byte   // the state of the I2C engine
	read      []byte // not yet fetched
	out       []byte // collected until the write is complete
	hung      bool   // the last transfer does not end: there is no response, and Linux waits for 4 s
	unplugged atomic.Bool
}

// NewMCP2221 returns a bridge to a bus.
func NewMCP2221(bus *Bus) *MCP2221 { return &MCP2221{bus: bus} }

// Commands.
const (
	mcpStatus    = 0x10
	mcpFetch     = 0x40
	mcpSetPins   = 0x50
	mcpGetPins   = 0x51
	mcpSetSRAM   = 0x60
	mcpGetSRAM   = 0x61
	mcpWrite     = 0x90
	mcpRead      = 0x91
	mcpReadAgain = 0x93 // after a repeated start
	mcpWriteOn   = 0x94 // without a stop
	mcpFlash     = 0xb0
)

// States of the engine.
const (
	mcpIdle      = 0x00
	mcpStartTime = 0x12 // the start timed out: a line is held low
	mcpNoAddress = 0x25
	mcpComplete  = 0x55
	mcpUnknown   = 0x01 // the command was not executed
)

// payload is the number of I2C bytes that fit into a report.
const payload = ReportSize - 4

// Answer returns the response to a report.
func (m *MCP2221) Answer(report []byte) (answer [ReportSize]byte) {
	var in [ReportSize]byte
	copy(in[:], report)
	answer[0] = in[0]
	length := int(binary.LittleEndian.Uint16(in[1:]))
	m.hung = false
	switch in[0] {
	case mcpStatus:
		if in[2] == 0x10 { // cancel the transfer
			m.engine, m.out, m.read = mcpIdle, nil, nil
		}
		answer[3] = in[3] // the speed is accepted
		answer[8] = m.engine
		if m.engine == mcpNoAddress {
			answer[20] = 0x40
		}
	case mcpWrite, mcpWriteOn:
		if len(m.out) >= length { // a new write
			m.out = nil
		}
		if m.out = append(m.out, in[4:4+min(length-len(m.out), payload)]...); len(m.out) == length {
			m.engine = m.state(m.bus.Write(in[3]>>1, m.out))
			m.out = nil
		}
	case mcpRead, mcpReadAgain:
		if in[0] == mcpReadAgain && m.engine != mcpIdle {
			// The write before it failed, so that no repeated start is possible.
			answer[1], answer[2], m.engine = mcpUnknown, m.engine, mcpIdle
			break
		}
		m.read = make([]byte, length)
		if m.engine = m.state(m.bus.Read(in[3]>>1, m.read)); m.engine != mcpIdle {
			m.read = nil
		}
	case mcpFetch:
		if m.engine != mcpIdle {
			answer[2], answer[3] = m.engine, 127
			break
		}
		answer[2] = mcpComplete
		n := copy(answer[4:], m.read)
		m.read, answer[3] = m.read[n:], byte(n)
	case mcpGetPins:
		for pin := range 4 {
			answer[3+2*pin] = 1
		}
	case mcpSetPins, mcpSetSRAM, mcpGetSRAM, mcpFlash:
	default:
		answer[1] = mcpUnknown
	}
	return answer
}

func (m *MCP2221) state(err error) byte {
	m.hung = errors.Is(err, ErrHung)
	switch {
	case m.unplugged.Load():
		return mcpNoAddress
	case err == nil:
		return mcpIdle
	case errors.Is(err, ErrStuck):
		return mcpStartTime
	}
	return mcpNoAddress
}
