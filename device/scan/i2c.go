package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsite/device"
)

const (
	// The other addresses are reserved (UM10204, section 3.1.12).
	first, last = 0x08, 0x77
	// alert is the SMBus alert response address.
	alert = 0x0c
	// busTimeout limits the scan of a bus. A stuck bus takes a second for each address.
	busTimeout = 30 * time.Second
	// maxParts is the number of addresses on a plausible bus. If more are acknowledged, SDA
	// is held low.
	maxParts = 48
)

// foreign are words in the names of adapters of displays and of a PC's main board. The
// numbers are those of HDMI on Raspberry Pis.
var foreign = []string{"HDMI", "DDC", "DP AUX", "AUX ", "i915", "AMDGPU", "nvidia", "NVIDIA", "SMBus", "Broadcom STB", "fef04500", "fef09500", "107d5082", "7e805000"}

// I2C returns the buses that Run scans.
func (s *Scan) I2C() []string {
	if s.Buses != nil {
		return s.Buses
	}
	var all []string
	for _, b := range s.Board.Buses() {
		if !slices.ContainsFunc(foreign, func(word string) bool { return strings.Contains(b.Adapter, word) }) {
			all = append(all, b.Name)
		}
	}
	return all
}

func busOf(where string) string {
	bus, _, _ := strings.Cut(where, "/")
	return bus
}

// bus scans one I2C bus. It first tests which addresses acknowledge a read, and identifies
// the parts only if the bus works. It skips the addresses in known.
func (s *Scan) bus(ctx context.Context, bus string, known []Found) (found []Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	var answer, silent []uint16
	failed := 0 // consecutively
	for addr := uint16(first); addr <= last; addr++ {
		where := fmt.Sprintf("%s/%#02x", bus, addr)
		if addr == alert || slices.ContainsFunc(known, func(f Found) bool { return f.Where == where }) {
			continue
		}
		if name, taken := s.Taken[where]; taken {
			found = append(found, Found{Where: where, What: name, Confidence: Certain, Says: "a device of the site; skipped"})
			continue
		}
		c, err := s.chip(ctx, bus, addr)
		if err != nil {
			return found, err
		}
		if holder := c.conn.KernelDriver(); holder != "" {
			c.conn.End()
			found = append(found, Found{Where: where, What: holder, Confidence: Certain, Says: "used by the kernel driver " + holder + "; skipped"})
			continue
		}
		there, err := c.conn.Answers()
		c.conn.End()
		switch {
		case err != nil:
			if failed++; failed == 3 || device.AsFault(err).Kind != device.Offline {
				return found, err // the bus fails, not the part
			}
			continue
		case there:
			answer = append(answer, addr)
		case slices.Contains(s.Probe, addr):
			silent = append(silent, addr)
		}
		failed = 0
	}
	if len(answer) > maxParts {
		return found, device.Faultf(device.Offline, "%d addresses of %s respond, which is impossible: SDA is held low, or nothing is connected to the bus; check its wires", len(answer), bus)
	}
	for _, addr := range slices.Concat(answer, silent) {
		f, err := s.part(ctx, bus, addr, slices.Contains(answer, addr))
		if err != nil {
			return found, err
		}
		found = append(found, f)
	}
	return found, nil
}

// chip opens an address and calls Begin; the caller calls conn.End.
func (s *Scan) chip(ctx context.Context, bus string, addr uint16) (chip, error) {
	at := s.Board.I2C()
	at.Bus, at.Address = bus, addr
	if strings.Contains(bus, "/") {
		return chip{}, device.Faultf(device.Invalid, "%s is behind a multiplexer, and selecting its channel needs a write; bind the multiplexer to its kernel driver, and scan the buses that the kernel then has", bus)
	}
	if err := at.Validate(); err != nil {
		return chip{}, err
	}
	conn := at.Conn()
	return chip{conn, addr}, conn.Begin(ctx)
}

// part identifies the part at an address that responds, or that is to be probed. An error
// is the context's or a wrong name of the bus. A part that stops responding is unknown.
func (s *Scan) part(ctx context.Context, bus string, addr uint16, answers bool) (Found, error) {
	c, err := s.chip(ctx, bus, addr)
	if err != nil {
		return Found{}, err
	}
	defer c.conn.End()
	f := Found{Where: fmt.Sprintf("%s/%#02x", bus, addr), Confidence: Candidate}
	keys := fmt.Sprintf("bus: %s, address: %#02x", bus, addr)
	probed := slices.Contains(s.Probe, addr)
	may := probed || c.maySelectRegister()
	var untried []signature
	var not []string // excluded by their ID or CRC
	for _, sig := range signatures {
		if !slices.Contains(sig.addresses, addr) {
			continue
		}
		if !may || sig.ask != nil && !probed {
			untried = append(untried, sig)
			continue
		}
		matches, err := c.matches(sig)
		if err == nil && !matches && sig.confidence == Certain {
			not = append(not, sig.part)
		}
		if matches {
			f.What, f.Confidence = sig.part, sig.confidence
			more, ok := "", sig.behind == nil
			if !ok {
				more, ok = sig.behind(c)
			}
			if ok {
				f.Devices = s.suggest(named(sig.part), sig.driver, sig.kernel, keys+more)
				f.Says = boardOf(sig.part, addr)
			} else {
				f.Says = fmt.Sprintf(sig.says, addr, bus)
			}
			return f, ctx.Err()
		}
	}
	f.What, f.Devices = s.candidates(addr, keys, untried, not)
	switch {
	case !answers:
		f.What, f.Devices = "no known part", nil
		f.Says = "no response to a read or to the commands of known parts"
	case len(untried) > 0:
		f.Says = fmt.Sprintf("identifying it needs a write, which can move the output of some parts; if it has no outputs: --probe %#02x", addr)
	default:
		f.Says = "these parts cannot be told apart; read the print on the part"
	}
	return f, ctx.Err()
}

// maySelectRegister reports whether writing a register's number is safe. No part that can have this
// address acts on a single byte, or reading has excluded those parts.
func (c chip) maySelectRegister() bool {
	look := false
	for _, p := range partsAt(c.addr) {
		switch p.byte {
		case acts:
			return false
		case repeats:
			look = true
		}
	}
	return !look || c.differs()
}

// differs reports whether a long read excludes the parts that repeat their bytes. A multiplexer
// repeats one, and an HT16K33 the 16 of its display or the 6 of its keys. 48 is a multiple of each.
// The bytes of a part with many registers differ somewhere.
func (c chip) differs() bool {
	const period = 48
	var b [256]byte
	if c.conn.Tx(c.addr, nil, b[:]) != nil {
		return false
	}
	for i := range len(b) - period {
		if b[i] != b[i+period] {
			return true
		}
	}
	return false
}

// candidates lists the parts that can have an address, including those that only a probe
// could identify, without the excluded ones. Parts that need a probe get no device.
func (s *Scan) candidates(addr uint16, keys string, untried []signature, not []string) (what string, devices []Device) {
	var names, later []string
	for _, sig := range untried {
		later = append(later, sig.part)
	}
	for _, p := range partsAt(addr) {
		if slices.Contains(not, p.name) {
			continue
		}
		names = append(names, p.name)
		if !slices.Contains(later, p.name) {
			devices = append(devices, s.suggest(named(p.name), p.driver, p.kernel, keys)...)
		}
	}
	for _, name := range later {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "an unknown part", nil
	}
	return strings.Join(names, ", "), devices
}

// named derives a device's name from the first word of a part's name.
func named(part string) string {
	word, _, _ := strings.Cut(part, " ")
	return deviceName(word)
}
