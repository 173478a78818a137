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
	// alert is the address of SMBus's alert response.
	alert = 0x0c
	// patience with a bus. One that is stuck takes a second for each address.
	patience = 30 * time.Second
	// most is how many parts a bus can have. Where more answer, SDA is held low, and every
	// address seems to be acknowledged.
	most = 48
)

// foreign are the adapters of monitors and of a PC's main board, by words of the
// names that their drivers give them. The numbers are those of Raspberry Pis' HDMI.
var foreign = []string{"HDMI", "DDC", "DP AUX", "AUX ", "i915", "AMDGPU", "nvidia", "NVIDIA", "SMBus", "Broadcom STB", "fef04500", "fef09500", "107d5082", "7e805000"}

// I2C are the buses that Run looks at.
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

// bus looks at one I2C bus: first which addresses answer a read, and only then, when the
// bus works, what is at them. It skips the addresses in known.
func (s *Scan) bus(ctx context.Context, bus string, known []Found) (found []Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var answer, silent []uint16
	failed := 0 // in a row
	for addr := uint16(first); addr <= last; addr++ {
		where := fmt.Sprintf("%s/%#02x", bus, addr)
		if addr == alert || slices.ContainsFunc(known, func(f Found) bool { return f.Where == where }) {
			continue
		}
		if name, taken := s.Taken[where]; taken {
			found = append(found, Found{Where: where, What: name, Confidence: Certain, Says: "a device of the site; left alone"})
			continue
		}
		c, err := s.chip(ctx, bus, addr)
		if err != nil {
			return found, err
		}
		if holder := c.conn.KernelDriver(); holder != "" {
			c.conn.End()
			found = append(found, Found{Where: where, What: holder, Confidence: Certain, Says: "the kernel driver " + holder + " uses it; left alone"})
			continue
		}
		there, err := c.conn.Answers()
		c.conn.End()
		switch {
		case err != nil:
			if failed++; failed == 3 || device.AsFault(err).Kind != device.Offline {
				return found, err // it is not the part that fails, but the bus
			}
			continue
		case there:
			answer = append(answer, addr)
		case slices.Contains(s.Probe, addr):
			silent = append(silent, addr)
		}
		failed = 0
	}
	if len(answer) > most {
		return found, device.Faultf(device.Offline, "%s seems to have a part at %d addresses, which cannot be: SDA is held low, or nothing is wired to the bus; check its wires", bus, len(answer))
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

// chip calls Begin for an address; the caller calls End of its conn.
func (s *Scan) chip(ctx context.Context, bus string, addr uint16) (chip, error) {
	at := s.Board.I2C()
	at.Bus, at.Address = bus, addr
	if strings.Contains(bus, "/") {
		return chip{}, device.Faultf(device.Invalid, "%s is behind a multiplexer, and to choose its channel would be to write; bind the multiplexer to its kernel driver, and its channels are buses of their own", bus)
	}
	conn, err := at.Conn()
	if err != nil {
		return chip{}, err
	}
	return chip{conn, addr}, conn.Begin(ctx)
}

// part finds out what is at an address that answers, or that is to be probed. An
// error is of the context or of how the bus is named; a part that stops answering
// is one that is not known.
func (s *Scan) part(ctx context.Context, bus string, addr uint16, answers bool) (Found, error) {
	c, err := s.chip(ctx, bus, addr)
	if err != nil {
		return Found{}, err
	}
	defer c.conn.End()
	f := Found{Where: fmt.Sprintf("%s/%#02x", bus, addr), Confidence: Candidate}
	keys := fmt.Sprintf("bus: %s, address: %#02x", bus, addr)
	probed := slices.Contains(s.Probe, addr)
	may := probed || c.mayPoint()
	var untried []signature
	var not []string // parts that say by their id, or their CRC, that they are another
	for _, sig := range signatures {
		if !slices.Contains(sig.addresses, addr) {
			continue
		}
		if !may || sig.ask != nil && !probed {
			untried = append(untried, sig)
			continue
		}
		matches, err := c.known(sig)
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
			} else {
				f.Says = fmt.Sprintf(sig.says, addr, bus)
			}
			return f, ctx.Err()
		}
	}
	f.What, f.Devices = s.candidates(addr, keys, untried, not)
	switch {
	case !answers:
		f.What, f.Devices = "nothing that is known here", nil
		f.Says = "no answer to a read, nor to what known parts are asked"
	case len(untried) > 0:
		f.Says = fmt.Sprintf("a byte could move an output here; if you know that it cannot: --probe %#02x", addr)
	default:
		f.Says = "no register tells which; the print on the part does"
	}
	return f, ctx.Err()
}

// mayPoint reports whether the number of a register may be written: no part that
// can be at this address acts on it, or reading has shown that it is none of those.
func (c chip) mayPoint() bool {
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

// differs reports whether a long read shows that the part is none of those whose
// bytes come again: a multiplexer has one, and an HT16K33 the 16 of its display or
// the 6 of its keys. 48 is a multiple of each. A part with many registers differs
// somewhere.
func (c chip) differs() bool {
	const round = 48
	var b [256]byte
	if c.conn.Tx(c.addr, nil, b[:]) != nil {
		return false
	}
	for i := range len(b) - round {
		if b[i] != b[i+round] {
			return true
		}
	}
	return false
}

// candidates names the parts that can be at an address, with those that were not
// asked for, and without those that it is not. What a probe could tell is no device yet.
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

// named is a part's name as a device's.
func named(part string) string {
	word, _, _ := strings.Cut(part, " ")
	return deviceName(word)
}
