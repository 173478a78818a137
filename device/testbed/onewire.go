package testbed

import "time"

// DS18B20 emulates Maxim's 1-Wire thermometer (19-7487) bit by bit. A conversion takes
// the datasheet's time; before the first one the reading is 85 °C.
type DS18B20 struct {
	inputs
	rom     [8]byte
	scratch [9]byte
	eeprom  [3]byte // two limits and the configuration
	ready   time.Time

	phase phase
	bits  []byte // received since the phase began, or left to send
	send  func() // called after the last bit is sent; nil while receiving
}

// phase handles a received bit; nil waits for a reset.
type phase func(d *DS18B20, bit byte)

// NewDS18B20 returns a thermometer with the input temperature. With the input crc set, it
// sends wrong check sums; with absent set, it does not respond.
func NewDS18B20(serial [6]byte) *DS18B20 {
	d := &DS18B20{inputs: inputs{"temperature": 20, "crc": 0, "absent": 0}, eeprom: [3]byte{0x4b, 0x46, 0x7f}}
	d.rom[0] = 0x28
	copy(d.rom[1:], serial[:])
	d.rom[7] = crc8(d.rom[:7])
	d.powerOn()
	return d
}

func (d *DS18B20) powerOn() {
	d.scratch = [9]byte{0x50, 0x05, d.eeprom[0], d.eeprom[1], d.eeprom[2], 0xff, 0x0c, 0x10}
	d.phase = nil
}

// reset handles the reset pulse and reports presence.
func (d *DS18B20) reset() (present bool) {
	if d.inputs["absent"] != 0 {
		d.powerOn()
		return false
	}
	d.receive((*DS18B20).command)
	return true
}

func (d *DS18B20) receive(p phase) { d.phase, d.bits, d.send = p, nil, nil }

// transmit sends bytes, lowest bit first, and then calls then.
func (d *DS18B20) transmit(then func(), b ...byte) {
	d.receive(nil)
	for _, v := range b {
		for i := range 8 {
			d.bits = append(d.bits, v>>i&1)
		}
	}
	d.send = then
}

// level returns the device's bit in the next slot: 0 pulls the line low.
func (d *DS18B20) level() byte {
	if d.send != nil && len(d.bits) > 0 {
		return d.bits[0]
	}
	return 1
}

// slot ends a time slot in which the line had that level.
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

func (d *DS18B20) idle() { d.receive(nil) }

// collect adds a bit, and returns n bytes once they are complete.
func (d *DS18B20) collect(bit byte, n int) ([]byte, bool) {
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

// command receives a ROM command.
func (d *DS18B20) command(bit byte) {
	b, ok := d.collect(bit, 1)
	if !ok {
		return
	}
	switch b[0] {
	case 0xf0:
		d.search(0)
	case 0x33:
		d.transmit(func() { d.receive((*DS18B20).function) }, d.rom[:]...)
	case 0x55:
		d.receive((*DS18B20).match)
	case 0xcc:
		d.receive((*DS18B20).function)
	default: // an alarm search too: no alarm is emulated
		d.idle()
	}
}

// search sends bit n of the ROM code and its complement, and becomes idle if the master
// selects the other bit (application note 187).
func (d *DS18B20) search(n int) {
	own := d.rom[n/8] >> (n % 8) & 1
	d.bits = []byte{own, own ^ 1}
	d.send = func() {
		d.receive(func(d *DS18B20, bit byte) {
			switch {
			case bit != own:
				d.idle()
			case n == 63:
				d.receive((*DS18B20).function)
			default:
				d.search(n + 1)
			}
		})
	}
}

func (d *DS18B20) match(bit byte) {
	b, ok := d.collect(bit, 8)
	switch {
	case !ok:
	case [8]byte(b) == d.rom:
		d.receive((*DS18B20).function)
	default:
		d.idle()
	}
}

// function receives a function command.
func (d *DS18B20) function(bit byte) {
	b, ok := d.collect(bit, 1)
	if !ok {
		return
	}
	switch b[0] {
	case 0x44:
		d.ready = time.Now().Add(d.conversionTime())
		d.sendBusy()
	case 0xbe:
		d.finishConversion()
		pad := d.scratch
		pad[8] = crc8(pad[:8])
		if d.inputs["crc"] != 0 {
			pad[8] ^= 0xff
		}
		d.transmit(d.idle, pad[:]...)
	case 0x4e:
		d.receive(func(d *DS18B20, bit byte) {
			if b, ok := d.collect(bit, 3); ok {
				copy(d.scratch[2:], b)
				d.scratch[4] = b[2]&0x60 | 0x1f
				d.idle()
			}
		})
	case 0x48:
		copy(d.eeprom[:], d.scratch[2:5])
		d.idle()
	case 0xb8:
		copy(d.scratch[2:5], d.eeprom[:])
		d.idle()
	case 0xb4: // read power supply: not parasite-powered
		d.idle()
	default:
		d.idle()
	}
}

// sendBusy sends 0 during the conversion, and then 1.
func (d *DS18B20) sendBusy() {
	bit := byte(0)
	if d.finishConversion() {
		bit = 1
	}
	d.bits = []byte{bit}
	d.send = d.sendBusy
}

// conversionTime returns the time of a conversion at the resolution: 750 ms for 12 bits.
func (d *DS18B20) conversionTime() time.Duration {
	return 750 * time.Millisecond >> (3 - d.scratch[4]>>5&3)
}

// finishConversion stores the result of a conversion whose time is over, and reports
// whether none is running.
func (d *DS18B20) finishConversion() bool {
	if time.Now().Before(d.ready) {
		return false
	}
	if !d.ready.IsZero() {
		d.ready = time.Time{}
		unused := 3 - d.scratch[4]>>5&3
		t := sixteenths(d.inputs["temperature"], -55, 125) >> unused << unused
		d.scratch[0], d.scratch[1] = byte(t), byte(t>>8)
		d.scratch[6] = 0x10 - d.scratch[0]&0xf // as real parts do
	}
	return true
}

// crc8 returns the CRC x⁸+x⁵+x⁴+1, lowest bit first (application note 27).
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
