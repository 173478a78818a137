package board_test

import (
	"fmt"
	"syscall"
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

func TestControllers(t *testing.T) {
	main := boardtest.NewChip("gpiochip4", "pinctrl-rp1", named(54, map[int]string{17: "PIN11", 4: "-"})...)
	for line := 6; line < 28; line++ {
		main.Take(line, "somebody")
	}
	other := boardtest.NewChip("gpiochip5", "usb", "DOOR", "A", "A", "GPIO17", "", "7", "a/b")
	b := boardtest.Lines(main, other)
	got, err := b.Controllers("GPIO5", "gpiochip4/0", "i2c-1/0x76", "DOOR")
	const want = "[{gpiochip4 pinctrl-rp1 54 [GPIO1 GPIO2 GPIO3 GPIO4]} {gpiochip5 usb 7 [gpiochip5/1 gpiochip5/2 gpiochip5/3 gpiochip5/4 gpiochip5/5 gpiochip5/6]}]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, c := range got {
		for _, pin := range c.Free {
			if _, err := b.Output(pin, board.OutputOptions{}); err != nil {
				t.Errorf("%s is no free line: %v", pin, err)
			}
		}
	}
	_, err = board.On(board.Machine{GPIO: deniedChips{}}).Controllers()
	faulted(t, err, device.Denied, "group gpio")
}

type deniedChips struct{ board.GPIO }

func (deniedChips) Chips() ([]board.Chip, error) { return nil, syscall.EACCES }
