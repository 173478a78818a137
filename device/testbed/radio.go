package testbed

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Radio is an emulated Bluetooth controller without a connection. It speaks H4, as a controller on a serial line
// does (Bluetooth Core Specification, volume 4, parts A and E), and reports advertisements while it is told to scan.
type Radio struct {
	mu       sync.Mutex // guards the following, and writing
	out      io.Writer
	scanning bool
	adverts  []RadioAdvert
	reports  int
}

// RadioAdvert is an advertiser near a Radio.
type RadioAdvert struct {
	Address [6]byte // the lowest byte first
	Random  bool
	Data    []byte // advertising data, at most 31 bytes
}

// ParseAdvert reads an address, public or random, and data in hexadecimal digits.
func ParseAdvert(line string) (a RadioAdvert, err error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return a, fmt.Errorf("%q is no advertiser", line)
	}
	address, err := hex.DecodeString(strings.ReplaceAll(fields[0], ":", ""))
	if err != nil || len(address) != 6 {
		return a, fmt.Errorf("%q is no address", fields[0])
	}
	for i := range a.Address {
		a.Address[i] = address[5-i]
	}
	a.Random = fields[1] == "random"
	a.Data, err = hex.DecodeString(fields[2])
	return a, err
}

// Advertise replaces the advertisers.
func (r *Radio) Advertise(all []RadioAdvert) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.adverts = all
}

// Reports returns how many advertisements were reported.
func (r *Radio) Reports() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports
}

// Serve answers commands until line ends. Each advertiser is reported once in every period, or
// as often as there is time for, while the host scans.
func (r *Radio) Serve(line io.ReadWriter, period time.Duration) error {
	r.out = line
	done := make(chan struct{})
	defer close(done)
	go r.report(period, done)
	in := bufio.NewReader(line)
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		if head[0] != 1 { // no command; there are no connections for data
			return fmt.Errorf("packet of type %d", head[0])
		}
		parameters := make([]byte, head[3])
		if _, err := io.ReadFull(in, parameters); err != nil {
			return err
		}
		if err := r.command(binary.LittleEndian.Uint16(head[1:]), parameters); err != nil {
			return err
		}
	}
}

// answers are the lengths of some answers; others may be longer than they have to be.
var answers = map[uint16]int{0x2005: 0, 0x200B: 0, 0x200C: 0, 0x1001: 8, 0x1003: 8, 0x1005: 7, 0x1009: 6, 0x2002: 3, 0x2003: 8, 0x201C: 8}

func (r *Radio) command(opcode uint16, parameters []byte) error {
	answer := make([]byte, 64) // after the status; zeros suit most commands
	if n, ok := answers[opcode]; ok {
		answer = answer[:n]
	}
	switch opcode {
	case 0x1001: // local version: 5.0
		copy(answer, []byte{9, 0, 0, 9, 0xff, 0xff, 0, 0})
	case 0x1002: // supported commands
	case 0x1003: // features: LE, no BR/EDR
		answer[4] = 0x60
	case 0x1009: // address
		copy(answer, []byte{1, 2, 3, 4, 5, 6})
	case 0x1005, 0x2002: // buffers
		copy(answer, []byte{251, 0, 8, 0, 8, 0, 0})
	case 0x201C: // states: all of scanning
		copy(answer, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 3})
	case 0x200C: // scan enable
		r.mu.Lock()
		r.scanning = len(parameters) > 0 && parameters[0] == 1
		r.mu.Unlock()
	}
	event := append([]byte{4, 0x0e, byte(4 + len(answer)), 1, byte(opcode), byte(opcode >> 8), 0}, answer...)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.out.Write(event)
	return err
}

// mostReports limits the reports of one step: a receiver hears a few hundred advertisements a second.
const mostReports = 4

// report reports the advertisers, spread over the period or longer.
func (r *Radio) report(period time.Duration, done chan struct{}) {
	const step = 20 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	next := 0
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		r.mu.Lock()
		for n := min(len(r.adverts)*int(step)/int(period)+1, mostReports); n > 0 && r.scanning && len(r.adverts) > 0; n-- {
			next = (next + 1) % len(r.adverts)
			r.out.Write(r.adverts[next].event())
			r.reports++
		}
		r.mu.Unlock()
	}
}

// event returns the LE Advertising Report of an advertiser that accepts no connection.
func (a RadioAdvert) event() []byte {
	kind := byte(0)
	if a.Random {
		kind = 1
	}
	report := append([]byte{2, 1, 3, kind}, a.Address[:]...)
	report = append(report, byte(len(a.Data)))
	report = append(report, a.Data...)
	report = append(report, 0xc4) // -60 dBm
	return append([]byte{4, 0x3e, byte(len(report))}, report...)
}
