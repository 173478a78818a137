package testbed

import "time"

// DS18B20 is Maxim's thermometer on a 1-Wire line (19-7487), bit by bit. It takes
// the time that a conversion takes and says 85 °C before its first.
type DS18B20 struct {
	told
	rom     [8]byte
	scratch [9]byte
	kept    [3]byte // in EEPROM: two limits and the configuration
	ready   time.Time

	phase phase
	bits  []byte // received since the phase began, or left to send
	send  func() // what comes after the last bit was sent
}

// phase is what a 1-Wire device waits for; nil for a reset.
type phase func(d *DS18B20, bit byte)

// NewDS18B20 measures temperature. Told crc or absent other than 0, it sends wrong
// check sums, or is not there.
func NewDS18B20(serial [6]byte) *DS18B20 {
	d := &DS18B20{told: told{"temperature": 20, "crc": 0, "absent": 0}, kept: [3]byte{0x4b, 0x46, 0x7f}}
	d.rom[0] = 0x28
	copy(d.rom[1:], serial[:])
	d.rom[7] = crc8(d.rom[:7])
	d.powerOn()
	return d
}

func (d *DS18B20) powerOn() {
	d.scratch = [9]byte{0x50, 0x05, d.kept[0], d.kept[1], d.kept[2], 0xff, 0x0c, 0x10}
	d.phase = nil
}

// reset reports presence and begins anew.
func (d *DS18B20) reset() (present bool) {
	if d.told["absent"] != 0 {
		d.powerOn()
		return false
	}
	d.listen((*DS18B20).command)
	return true
}

func (d *DS18B20) listen(p phase) { d.phase, d.bits, d.send = p, nil, nil }

// say sends bytes, lowest bit first, and goes on with then.
func (d *DS18B20) say(then func(), b ...byte) {
	d.listen(nil)
	for _, v := range b {
		for i := range 8 {
			d.bits = append(d.bits, v>>i&1)
		}
	}
	d.send = then
}

// level is what the device does to the line in the next slot: 0 pulls it low.
func (d *DS18B20) level() byte {
	if d.send != nil && len(d.bits) > 0 {
		return d.bits[0]
	}
	return 1
}

// slot ends the slot; line is how the line was.
func (d *DS18B20) slot(line byte) {
	switch {
	case d.send != nil:
		if d.bits = d.bits[1:]; len(d.bits) == 0 {
			d.send()
		}
	case d.phase != nil:
		d.phase(d, line)
	}
}

func (d *DS18B20) deaf() { d.listen(nil) }

// taken collects bits until there are n bytes.
func (d *DS18B20) taken(bit byte, n int) ([]byte, bool) {
	d.bits = append(d.bits, bit)
	if len(d.bits) < 8*n {
		return nil, false
	}
	b := make([]byte, n)
	for i, v := range d.bits {
		b[i/8] |= v << (i % 8)
	}
	d.bits = nil
	return b, true
}

// command takes a command to find and choose devices.
func (d *DS18B20) command(bit byte) {
	b, ok := d.taken(bit, 1)
	if !ok {
		return
	}
	switch b[0] {
	case 0xf0:
		d.search(0)
	case 0x33:
		d.say(func() { d.listen((*DS18B20).function) }, d.rom[:]...)
	case 0x55:
		d.listen((*DS18B20).match)
	case 0xcc:
		d.listen((*DS18B20).function)
	default: // an alarm search too: no limit is watched
		d.deaf()
	}
}

// search sends bit n of the number and its opposite, and drops out if the master
// goes the other way (application note 187).
func (d *DS18B20) search(n int) {
	own := d.rom[n/8] >> (n % 8) & 1
	d.bits = []byte{own, own ^ 1}
	d.send = func() {
		d.listen(func(d *DS18B20, bit byte) {
			switch {
			case bit != own:
				d.deaf()
			case n == 63:
				d.listen((*DS18B20).function)
			default:
				d.search(n + 1)
			}
		})
	}
}

func (d *DS18B20) match(bit byte) {
	b, ok := d.taken(bit, 8)
	switch {
	case !ok:
	case [8]byte(b) == d.rom:
		d.listen((*DS18B20).function)
	default:
		d.deaf()
	}
}

// function takes a command to the chosen device.
func (d *DS18B20) function(bit byte) {
	b, ok := d.taken(bit, 1)
	if !ok {
		return
	}
	switch b[0] {
	case 0x44:
		d.ready = time.Now().Add(d.length())
		d.busy()
	case 0xbe:
		d.settle()
		pad := d.scratch
		pad[8] = crc8(pad[:8])
		if d.told["crc"] != 0 {
			pad[8] ^= 0xff
		}
		d.say(d.deaf, pad[:]...)
	case 0x4e:
		d.listen(func(d *DS18B20, bit byte) {
			if b, ok := d.taken(bit, 3); ok {
				copy(d.scratch[2:], b)
				d.scratch[4] = b[2]&0x60 | 0x1f
				d.deaf()
			}
		})
	case 0x48:
		copy(d.kept[:], d.scratch[2:5])
		d.deaf()
	case 0xb8:
		copy(d.scratch[2:5], d.kept[:])
		d.deaf()
	case 0xb4: // it has a supply of its own
		d.deaf()
	default:
		d.deaf()
	}
}

// busy sends 0 until the conversion ends.
func (d *DS18B20) busy() {
	bit := byte(0)
	if d.settle() {
		bit = 1
	}
	d.bits = []byte{bit}
	d.send = d.busy
}

// length is how long a conversion takes at the resolution: 750 ms for 12 bits.
func (d *DS18B20) length() time.Duration {
	return 750 * time.Millisecond >> (3 - d.scratch[4]>>5&3)
}

// settle takes in a conversion that has ended.
func (d *DS18B20) settle() bool {
	if time.Now().Before(d.ready) {
		return false
	}
	if !d.ready.IsZero() {
		d.ready = time.Time{}
		unused := 3 - d.scratch[4]>>5&3
		t := sixteenths(d.told["temperature"], -55, 125) >> unused << unused
		d.scratch[0], d.scratch[1] = byte(t), byte(t>>8)
		d.scratch[6] = 0x10 - d.scratch[0]&0xf // as parts in the wild have it
	}
	return true
}

// crc8 is x⁸+x⁵+x⁴+1, lowest bit first (application note 27).
func crc8(b []byte) (crc byte) {
	for _, v := range b {
		crc ^= v
		for range 8 {
			odd := crc & 1
			if crc >>= 1; odd != 0 {
				crc ^= 0x8c
			}
		}
	}
	return crc
}
