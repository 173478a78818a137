package board

import (
	"fmt"
	"syscall"
	"testing"

	"agentsite/device"
)

func TestControllers(t *testing.T) {
	main := NewFakeChip("gpiochip4", "pinctrl-rp1", named(54, map[int]string{17: "PIN11", 4: "-"})...)
	for line := 6; line < 28; line++ {
		main.Take(line, "somebody")
	}
	other := NewFakeChip("gpiochip5", "usb", "DOOR", "A", "A", "GPIO17", "", "7", "a/b")
	b := FakeLines(main, other)
	got, err := b.Controllers("GPIO5", "gpiochip4/0", "i2c-1/0x76", "DOOR")
	const want = "[{gpiochip4 pinctrl-rp1 54 [GPIO1 GPIO2 GPIO3 GPIO4]} {gpiochip5 usb 7 [gpiochip5/1 gpiochip5/2 gpiochip5/3 gpiochip5/4 gpiochip5/5 gpiochip5/6]}]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, c := range got {
		for _, pin := range c.Free {
			if _, err := b.Output(pin, OutputOptions{}); err != nil {
				t.Errorf("%s is no free line: %v", pin, err)
			}
		}
	}
	b.chips = deniedChips{}
	_, err = b.Controllers()
	faulted(t, err, device.Denied, "add the user to the group gpio")
}

type deniedChips struct{ fakeChips }

func (deniedChips) list() ([]chip, error) { return nil, syscall.EACCES }
