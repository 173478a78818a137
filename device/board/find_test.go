package board_test

import (
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// named fills a chip's names from a map of those that matter.
func named(n int, names map[int]string) []string {
	all := make([]string, n)
	for i, name := range names {
		all[i] = name
	}
	return all
}

// The names are those of the device trees in raspberrypi/linux: bcm2708-rpi-zero.dts,
// bcm2711-rpi-4-b.dts and bcm2712-rpi-5-b.dts as it was first and is now.
func zero() []*boardtest.Chip {
	return []*boardtest.Chip{boardtest.NewChip("gpiochip0", "pinctrl-bcm2835", named(54, map[int]string{
		0: "ID_SDA", 2: "SDA1", 4: "GPIO_GCLK", 7: "SPI_CE1_N", 17: "GPIO17", 28: "SDA0", 47: "STATUS_LED_N"})...)}
}

func four() []*boardtest.Chip {
	return []*boardtest.Chip{
		boardtest.NewChip("gpiochip0", "pinctrl-bcm2711", named(58, map[int]string{0: "ID_SDA", 2: "GPIO2", 4: "GPIO4", 17: "GPIO17", 44: "SDA0"})...),
		boardtest.NewChip("gpiochip1", "raspberrypi-exp-gpio", named(8, map[int]string{0: "BT_ON", 2: "PWR_LED_OFF"})...),
	}
}

func firstFive() []*boardtest.Chip {
	return []*boardtest.Chip{
		boardtest.NewChip("gpiochip0", "gpio-brcmstb@107d508500", named(32, map[int]string{0: "-", 1: "2712_BOOT_CS_N", 17: "-", 20: "PWR_GPIO"})...),
		boardtest.NewChip("gpiochip2", "gpio-brcmstb@107d517c00", named(17, map[int]string{8: "2712_WAKE"})...),
		boardtest.NewChip("gpiochip4", "pinctrl-rp1", named(54, map[int]string{0: "ID_SD", 4: "PIN7", 17: "PIN11", 47: "2712_WAKE"})...),
	}
}

func five() []*boardtest.Chip {
	return []*boardtest.Chip{
		boardtest.NewChip("gpiochip0", "pinctrl-rp1", named(54, map[int]string{0: "ID_SDA", 4: "GPIO4", 17: "GPIO17"})...),
		boardtest.NewChip("gpiochip10", "gpio-brcmstb@107d508500", named(32, map[int]string{17: "-"})...),
	}
}

func TestFind(t *testing.T) {
	one := func(chip *boardtest.Chip) []*boardtest.Chip { return []*boardtest.Chip{chip} }
	for _, tc := range []struct {
		name  string
		chips []*boardtest.Chip
		pin   board.Pin
		chip  int // of chips
		line  int
	}{
		{"a Zero", zero(), "GPIO17", 0, 17},
		{"a Zero's line with another name", zero(), "GPIO4", 0, 4},
		{"a Zero by the kernel's name", zero(), "GPIO_GCLK", 0, 4},
		{"a 4", four(), "GPIO17", 0, 17},
		{"a 4 by number", four(), "GPIO0", 0, 0},
		{"a 4's SDA0", four(), "SDA0", 0, 44},
		{"another chip of a 4", four(), "BT_ON", 1, 0},
		{"a first 5", firstFive(), "GPIO17", 2, 17},
		{"a first 5 by the kernel's name", firstFive(), "PIN11", 2, 17},
		{"a 5", five(), "GPIO17", 0, 17},
		{"a chip by name", five(), "gpiochip10/3", 1, 3},
		{"a chip by label", firstFive(), "pinctrl-rp1/3", 2, 3},
		{"no names", one(boardtest.NewChip("gpiochip0", "pinctrl-bcm2835", make([]string, 54)...)), "GPIO17", 0, 17},
		{"a board that is no Pi", one(boardtest.NewChip("gpiochip3", "gpio-sim.0", named(4, map[int]string{1: "GPIO17"})...)), "GPIO17", 0, 1},
		{"beside an adapter", append(five(), boardtest.NewChip("gpiochip11", "mcp2221", "GPIO17")), "GPIO17", 0, 17},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := boardtest.Lines(tc.chips...).Output(tc.pin, board.OutputOptions{}); err != nil || !tc.chips[tc.chip].Driven(tc.line) {
				t.Errorf("%s is not line %d of chip %d: %v", tc.pin, tc.line, tc.chip, err)
			}
		})
	}
}

func TestFindNothing(t *testing.T) {
	for _, tc := range []struct {
		chips []*boardtest.Chip
		pin   board.Pin
		kind  device.FaultKind
		want  string
	}{
		{four(), "BT_OFF", device.Offline, "did you mean BT_ON"},
		{four(), "GPIO99", device.Offline, "there is no line GPIO99; did you mean GPIO"},
		{four(), "gpiochip7/0", device.Offline, "there is no chip gpiochip7; this machine has gpiochip0 (pinctrl-bcm2711), gpiochip1 (raspberrypi-exp-gpio)"},
		{four(), "gpiochip1/8", device.Offline, "gpiochip1 has only 8 lines, counted from 0"},
		{firstFive(), "2712_WAKE", device.Invalid, "2 lines are called 2712_WAKE; write gpiochip2/8 or gpiochip4/47"},
		{append(five(), boardtest.NewChip("gpiochip11", "mcp2221", ""), boardtest.NewChip("gpiochip12", "mcp2221", "")), "mcp2221/0", device.Invalid, "write gpiochip11/0 or gpiochip12/0"},
		{nil, "GPIO17", device.Offline, "no GPIO chip"},
		{nil, "gpiochip0/1", device.Offline, "no GPIO chip"},
		{[]*boardtest.Chip{boardtest.NewChip("gpiochip2", "mcp2221", "", "")}, "GPIO17", device.Offline, "like gpiochip2/0"},
		{[]*boardtest.Chip{boardtest.NewChip("gpiochip2", "mcp2221", "", "")}, "", device.Offline, "there is no line"},
	} {
		_, err := boardtest.Lines(tc.chips...).Output(tc.pin, board.OutputOptions{})
		faulted(t, err, tc.kind, tc.want)
	}
}

func faulted(t *testing.T, err error, kind device.FaultKind, says string) {
	t.Helper()
	if err == nil || device.AsFault(err).Kind != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want a fault %s with %q", err, kind, says)
	}
}
