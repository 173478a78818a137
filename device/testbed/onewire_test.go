package testbed

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// master is a minimal driver of a DS2482.
type master struct{ rig }

func (m master) reset() (present bool) {
	m.write(0xb4)
	return m.read(1)[0]&dsPresence != 0
}

func (m master) send(b ...byte) {
	for _, v := range b {
		m.write(0xa5, v)
	}
}

func (m master) receive(n int) []byte {
	var all []byte
	for range n {
		m.write(0x96)
		m.write(0xe1, 0xe1)
		all = append(all, m.read(1)...)
	}
	return all
}

// search finds all ROM codes on the line (application note 187).
func (m master) search() (found [][8]byte) {
	last := -1
	var rom [8]byte
	for {
		if !m.reset() {
			return found
		}
		m.send(0xf0)
		fork := -1
		for i := range 64 {
			way := rom[i/8] >> (i % 8) & 1
			if i > last {
				way = 0
			} else if i == last {
				way = 1
			}
			m.write(0x78, way<<7)
			status := m.read(1)[0]
			if status&(dsSingle|dsTriplet) == dsSingle|dsTriplet {
				return found
			}
			taken := status >> 7
			if status&(dsSingle|dsTriplet) == 0 && taken == 0 {
				fork = i
			}
			rom[i/8] = rom[i/8]&^(1<<(i%8)) | taken<<(i%8)
		}
		found = append(found, rom)
		if last = fork; last < 0 {
			return found
		}
	}
}

func newMaster(t *testing.T, line ...*DS18B20) master {
	m := master{newRig(t, 0x18, NewDS2482(line...))}
	m.write(0xf0)
	if got := m.read(1)[0]; got != dsReset|dsLevel {
		t.Errorf("status %#02x after a reset", got)
	}
	m.write(0xd2, 0xe1)
	if got := m.read(1)[0]; got != 0x01 {
		t.Errorf("configuration %#02x", got)
	}
	for i, d := range line {
		m.AddBehind("ds18b20-"+string(rune('1'+i)), d)
	}
	return m
}

func TestDS2482(t *testing.T) {
	a, b := NewDS18B20([6]byte{1, 2, 3, 4, 5, 6}), NewDS18B20([6]byte{9, 8, 7, 6, 5, 4})
	m := newMaster(t, a, b)
	found := m.search()
	if len(found) != 2 || found[0] != a.rom && found[1] != a.rom || found[0] == found[1] {
		t.Errorf("found % x", found)
	}
	m.SetInput("ds18b20-2", "absent", 1)
	if found = m.search(); len(found) != 1 || found[0] != a.rom {
		t.Errorf("one of them is gone, found % x", found)
	}
	m.SetInput("ds18b20-1", "absent", 1)
	if m.reset() {
		t.Error("nobody is there, but somebody answers")
	}
	m.setInput("short", 1)
	m.write(0xb4)
	if got := m.read(1)[0]; got&(dsShort|dsLevel|dsPresence) != dsShort {
		t.Errorf("status %#02x of a short circuit", got)
	}
}

func TestDS18B20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := NewDS18B20([6]byte{1, 2, 3, 4, 5, 6}), NewDS18B20([6]byte{9, 8, 7, 6, 5, 4})
		m := newMaster(t, a, b)
		choose := func() {
			t.Helper()
			if !m.reset() {
				t.Fatal("nobody is there")
			}
			m.send(append([]byte{0x55}, a.rom[:]...)...)
		}
		pad := func(want ...byte) {
			t.Helper()
			choose()
			m.send(0xbe)
			got := m.receive(9)
			if !bytes.Equal(got[:len(want)], want) || crc8(got[:8]) != got[8] {
				t.Errorf("% x, want % x and a right CRC", got, want)
			}
		}
		m.SetInput("ds18b20-1", "temperature", -25.0625) // datasheet, table 1
		pad(0x50, 0x05, 0x4b, 0x46, 0x7f, 0xff, 0x0c, 0x10)
		choose()
		m.send(0x44)
		if busy := m.receive(1)[0]; busy != 0 {
			t.Errorf("a conversion reads %#02x", busy)
		}
		pad(0x50, 0x05)
		time.Sleep(750 * time.Millisecond)
		pad(0x6f, 0xfe)
		choose()
		m.send(0x4e, 1, 2, 0x1f) // 9 bits
		choose()
		m.send(0x44)
		time.Sleep(94 * time.Millisecond)
		pad(0x68, 0xfe, 1, 2, 0x1f) // the lowest three bits are nothing
		m.SetInput("ds18b20-1", "crc", 1)
		choose()
		m.send(0xbe)
		if got := m.receive(9); crc8(got[:8]) == got[8] {
			t.Errorf("% x has a right CRC", got)
		}
	})
}

// TestCRC8 uses the example of application note 27.
func TestCRC8(t *testing.T) {
	if got := crc8([]byte{0x02, 0x1c, 0xb8, 0x01, 0, 0, 0}); got != 0xa2 {
		t.Errorf("%#02x", got)
	}
}
