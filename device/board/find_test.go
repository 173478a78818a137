package board

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/device"
)

// lines fills a chip's names from a map of those that matter.
func named(n int, names map[int]string) []string {
	all := make([]string, n)
	for i, name := range names {
		all[i] = name
	}
	return all
}

// The names are those of the device trees in raspberrypi/linux: bcm2708-rpi-zero.dts,
// bcm2711-rpi-4-b.dts and bcm2712-rpi-5-b.dts as it was first and is now.
func zero() []*FakeChip {
	return []*FakeChip{NewFakeChip("gpiochip0", "pinctrl-bcm2835", named(54, map[int]string{
		0: "ID_SDA", 2: "SDA1", 4: "GPIO_GCLK", 7: "SPI_CE1_N", 17: "GPIO17", 28: "SDA0", 47: "STATUS_LED_N"})...)}
}

func four() []*FakeChip {
	return []*FakeChip{
		NewFakeChip("gpiochip0", "pinctrl-bcm2711", named(58, map[int]string{0: "ID_SDA", 2: "GPIO2", 4: "GPIO4", 17: "GPIO17", 44: "SDA0"})...),
		NewFakeChip("gpiochip1", "raspberrypi-exp-gpio", named(8, map[int]string{0: "BT_ON", 2: "PWR_LED_OFF"})...),
	}
}

func firstFive() []*FakeChip {
	return []*FakeChip{
		NewFakeChip("gpiochip0", "gpio-brcmstb@107d508500", named(32, map[int]string{0: "-", 1: "2712_BOOT_CS_N", 17: "-", 20: "PWR_GPIO"})...),
		NewFakeChip("gpiochip2", "gpio-brcmstb@107d517c00", named(17, map[int]string{8: "2712_WAKE"})...),
		NewFakeChip("gpiochip4", "pinctrl-rp1", named(54, map[int]string{0: "ID_SD", 4: "PIN7", 17: "PIN11", 47: "2712_WAKE"})...),
	}
}

func five() []*FakeChip {
	return []*FakeChip{
		NewFakeChip("gpiochip0", "pinctrl-rp1", named(54, map[int]string{0: "ID_SDA", 4: "GPIO4", 17: "GPIO17"})...),
		NewFakeChip("gpiochip10", "gpio-brcmstb@107d508500", named(32, map[int]string{17: "-"})...),
	}
}

func TestFind(t *testing.T) {
	board := func(chips ...*FakeChip) []*FakeChip { return chips }
	for _, tc := range []struct {
		name  string
		chips []*FakeChip
		pin   Pin
		want  spot
	}{
		{"a Zero", zero(), "GPIO17", spot{"gpiochip0", 17}},
		{"a Zero's line with another name", zero(), "GPIO4", spot{"gpiochip0", 4}},
		{"a Zero by the kernel's name", zero(), "GPIO_GCLK", spot{"gpiochip0", 4}},
		{"a 4", four(), "GPIO17", spot{"gpiochip0", 17}},
		{"a 4 by number", four(), "GPIO0", spot{"gpiochip0", 0}},
		{"a 4's SDA0", four(), "SDA0", spot{"gpiochip0", 44}},
		{"another chip of a 4", four(), "BT_ON", spot{"gpiochip1", 0}},
		{"a first 5", firstFive(), "GPIO17", spot{"gpiochip4", 17}},
		{"a first 5 by the kernel's name", firstFive(), "PIN11", spot{"gpiochip4", 17}},
		{"a 5", five(), "GPIO17", spot{"gpiochip0", 17}},
		{"a chip by name", five(), "gpiochip10/3", spot{"gpiochip10", 3}},
		{"a chip by label", firstFive(), "pinctrl-rp1/3", spot{"gpiochip4", 3}},
		{"no names", board(NewFakeChip("gpiochip0", "pinctrl-bcm2835", make([]string, 54)...)), "GPIO17", spot{"gpiochip0", 17}},
		{"a board that is no Pi", board(NewFakeChip("gpiochip3", "gpio-sim.0", named(4, map[int]string{1: "GPIO17"})...)), "GPIO17", spot{"gpiochip3", 1}},
		{"beside an adapter", append(five(), NewFakeChip("gpiochip11", "mcp2221", "GPIO17")), "GPIO17", spot{"gpiochip0", 17}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, _ := fakeChips(tc.chips).list()
			if got, err := find(all, tc.pin); err != nil || got != tc.want {
				t.Errorf("%s is %v, %v; want %v", tc.pin, got, err, tc.want)
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	for _, tc := range []struct {
		chips []*FakeChip
		pin   Pin
		kind  device.FaultKind
		want  string
	}{
		{four(), "BT_OFF", device.Offline, "there are BT_ON, "},
		{four(), "GPIO99", device.Offline, "there is no line GPIO99; there are GPIO"},
		{four(), "gpiochip7/0", device.Offline, "there is no chip gpiochip7; this machine has gpiochip0 (pinctrl-bcm2711), gpiochip1 (raspberrypi-exp-gpio)"},
		{four(), "gpiochip1/8", device.Offline, "gpiochip1 has only 8 lines, counted from 0"},
		{firstFive(), "2712_WAKE", device.Invalid, "2 lines are called 2712_WAKE; write gpiochip2/8 or gpiochip4/47"},
		{append(five(), NewFakeChip("gpiochip11", "mcp2221", ""), NewFakeChip("gpiochip12", "mcp2221", "")), "mcp2221/0", device.Invalid, "write gpiochip11/0 or gpiochip12/0"},
		{nil, "GPIO17", device.Offline, "no GPIO chip at all"},
		{nil, "gpiochip0/1", device.Offline, "no GPIO chip at all"},
		{[]*FakeChip{NewFakeChip("gpiochip2", "mcp2221", "", "")}, "GPIO17", device.Offline, "write one like gpiochip2/0"},
		{[]*FakeChip{NewFakeChip("gpiochip2", "mcp2221", "", "")}, "", device.Offline, "there is no line"},
	} {
		_, err := FakeLines(tc.chips...).Output(tc.pin, OutputOptions{})
		faulted(t, err, tc.kind, tc.want)
	}
}

func faulted(t *testing.T, err error, kind device.FaultKind, says string) {
	t.Helper()
	if err == nil || device.AsFault(err).Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v (%v), want a fault %s with %q", err, kindOf(err), kind, says)
	}
}

func kindOf(err error) string {
	if err == nil {
		return "none"
	}
	return fmt.Sprint(device.AsFault(err).Kind)
}
