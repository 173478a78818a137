package scan

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"agentsite/device/board/boardtest"
	"agentsite/device/testbed"

	"periph.io/x/conn/v3/physic"
)

// emulated is a bus of emulated chips.
type emulated struct{ *testbed.Bus }

func (e emulated) String() string { return "emulated" }

func (e emulated) SetSpeed(physic.Frequency) error { return errors.New("no speed here") }

func (e emulated) Tx(addr uint16, w, r []byte) (err error) {
	if len(w) > 0 {
		err = e.Write(byte(addr), w)
	}
	if err == nil && len(r) > 0 {
		err = e.Read(byte(addr), r)
	}
	if err != nil {
		return fmt.Errorf("sysfs-i2c: %v", syscall.ENXIO)
	}
	return nil
}

func TestThermometers(t *testing.T) {
	floor, tank := testbed.NewDS18B20([6]byte{1, 2, 3, 4, 5, 6}), testbed.NewDS18B20([6]byte{9, 8, 7, 6, 5, 4})
	for _, tt := range []struct {
		behind []*testbed.DS18B20
		want   string
	}{
		{nil, "likely i2c-1/0x1b: DS2482 1-Wire bridge"},
		{[]*testbed.DS18B20{floor}, "likely i2c-1/0x1b: DS2482 1-Wire bridge | ds2482: { driver: ds18b20, bus: i2c-1, address: 0x1b }"},
		{[]*testbed.DS18B20{floor, tank}, "likely i2c-1/0x1b: DS2482 1-Wire bridge | ds2482: { driver: ds18b20, bus: i2c-1, address: 0x1b, " +
			"sensors: [{ name: temperature-1, id: 28-060504030201 }, { name: temperature-2, id: 28-040506070809 }] }"},
	} {
		b := testbed.NewBus()
		b.Add("ds2482", 0x1b, testbed.NewDS2482(tt.behind...))
		s := &Scan{Board: boardtest.I2C(emulated{b}), Root: "/nowhere", Buses: []string{"i2c-1"}, Probe: []uint16{0x1b}, Drivers: have("ds18b20")}
		if got := run(t, s); got != tt.want {
			t.Errorf("with %d thermometers:\n%s\nwant:\n%s", len(tt.behind), got, tt.want)
		}
	}
}
