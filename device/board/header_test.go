package board_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/device/board"
	"agentsite/device/driver"
)

func TestHeaderAndDevices(t *testing.T) {
	uses := []board.Use{
		{Device: "climate", Resources: (&board.I2C{Bus: "i2c-1", Address: 0x76}).Resources()},
		{Device: "light", Resources: []driver.Resource{{Name: "i2c-1/0x23", Shared: "the kernel's driver bh1750"}}},
		{Device: "pump", Resources: []driver.Resource{board.Pin("GPIO17").Resource()}},
		{Device: "door", Resources: []driver.Resource{board.Pin("PIN7").Resource()}}, // as the kernel names it
		{Device: "adc", Resources: (&board.SPI{Port: "spidev0.1"}).Resources()},
		{Device: "gps", Resources: (&board.Serial{Port: "/dev/serial0"}).Resources()},
		{Device: "boiler", Resources: []driver.Resource{board.OneWireResource}},
		{Device: "far", Resources: []driver.Resource{board.Pin("gpiochip0/17").Resource()}}, // of another chip than the header's
		{Device: "board"},
	}
	b := machine(t, map[string]string{"proc/device-tree/model": pi, "boot/firmware/config.txt": "dtoverlay=w1-gpio,pullup=1,gpiopin=22\n"}, firstFive()...)
	all, elsewhere := b.Header(uses)
	var got []string
	for _, p := range all {
		if p.Devices != nil {
			got = append(got, fmt.Sprintf("%d %s %s %s: %s", p.Number, p.Kind, p.Line, p.Signal, strings.Join(p.Devices, " ")))
		}
	}
	want := []string{
		"3 I2C GPIO2 SDA: climate light", "5 I2C GPIO3 SCL: climate light", "7 GPIO GPIO4 : door",
		"8 serial GPIO14 TX: gps", "10 serial GPIO15 RX: gps", "11 GPIO GPIO17 : pump", "15 1-Wire GPIO22 : boiler",
		"19 SPI GPIO10 MOSI: adc", "21 SPI GPIO9 MISO: adc", "23 SPI GPIO11 SCLK: adc", "26 SPI GPIO7 CE1: adc",
	}
	if !slices.Equal(got, want) || !slices.Equal(elsewhere, []string{"far", "board"}) {
		t.Errorf("%s\nelsewhere %v", strings.Join(got, "\n"), elsewhere)
	}
}

// TestHeaderIsWhole: without a machine the header has the positions that raspberrypi.com shows.
func TestHeaderIsWhole(t *testing.T) {
	all, _ := machine(t, nil).Header(nil)
	kinds := map[string][]int{}
	for _, p := range all {
		kinds[p.Kind] = append(kinds[p.Kind], p.Number)
	}
	for kind, want := range map[string][]int{
		board.ThreeVolts: {1, 17}, board.FiveVolts: {2, 4}, board.Ground: {6, 9, 14, 20, 25, 30, 34, 39},
		board.I2CLine: {3, 5}, board.UARTLine: {8, 10}, board.OneWire: {7}, board.SPILine: {19, 21, 23, 24, 26}, board.IDLine: {27, 28},
		board.GPIOLine: {11, 12, 13, 15, 16, 18, 22, 29, 31, 32, 33, 35, 36, 37, 38, 40},
	} {
		if !slices.Equal(kinds[kind], want) {
			t.Errorf("%s is at %v, want %v", kind, kinds[kind], want)
		}
	}
}
