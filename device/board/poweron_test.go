package board_test

import (
	"strings"
	"testing"

	"agentsite/device/board"
	"agentsite/device/board/boardtest"
)

// TestPowerOn has outputs on a Raspberry Pi, whose config.txt holds none, some or all of
// them.
func TestPowerOn(t *testing.T) {
	pump := []board.PowerOnLevel{{Pin: "GPIO17"}}
	lamp := []board.PowerOnLevel{{Pin: "GPIO27", High: true}}
	bus := []board.PowerOnLevel{{Pin: "GPIO23", High: true, Open: true}}
	fan := []board.PowerOnLevel{{Pin: "pinctrl-rp1/12", High: true}}
	wheel := []board.PowerOnLevel{{Pin: "GPIO5", High: true}, {Pin: "GPIO6", High: true}}
	const add, file = "warning %s: until the site runs, nothing holds it at its safe level; add %l at the end of /boot/firmware/config.txt, below [all], and reboot", "/boot/firmware/config.txt"
	missing := func(device, line string) string {
		return strings.NewReplacer("%s", device, "%l", line).Replace(add)
	}
	const held = "note pump: " + file + " holds it at its safe level from power-on, as gpio=17=op,dl does; "
	for name, tt := range map[string]struct {
		config string
		holds  map[string][]board.PowerOnLevel
		want   string
	}{
		"low":                 {"", map[string][]board.PowerOnLevel{"pump": pump}, missing("pump", "gpio=17=op,dl")},
		"high":                {"", map[string][]board.PowerOnLevel{"lamp": lamp}, missing("lamp", "gpio=27=op,dh")},
		"let go":              {"", map[string][]board.PowerOnLevel{"bus": bus}, missing("bus", "gpio=23=ip,pn")},
		"a chip's line":       {"", map[string][]board.PowerOnLevel{"fan": fan}, missing("fan", "gpio=12=op,dh")},
		"two lines":           {"", map[string][]board.PowerOnLevel{"wheel": wheel}, missing("wheel", "gpio=5,6=op,dh")},
		"one of two":          {"gpio=5=op,dh", map[string][]board.PowerOnLevel{"wheel": wheel}, missing("wheel", "gpio=5,6=op,dh")},
		"two, in their order": {"", map[string][]board.PowerOnLevel{"pump": pump, "lamp": lamp}, missing("lamp", "gpio=27=op,dh") + "\n" + missing("pump", "gpio=17=op,dl")},
		"held":                {"gpio=17=op,dl\n", map[string][]board.PowerOnLevel{"pump": pump}, held},
		"held, of Windows":    {"[all]\r\ngpio=17=op,dl\r\n", map[string][]board.PowerOnLevel{"pump": pump}, held},
		"held, in a range":    {"gpio=4,16-20=op,dl\n", map[string][]board.PowerOnLevel{"pump": pump}, held},
		"held, in two lines":  {"gpio=0-27=op\ngpio=17=dl\n", map[string][]board.PowerOnLevel{"pump": pump}, held},
		"the last counts":     {"gpio=17=op,dh\ngpio=17=op,dl\n", map[string][]board.PowerOnLevel{"pump": pump}, held},
		"a comment":           {"#gpio=17=op,dl\n", map[string][]board.PowerOnLevel{"pump": pump}, missing("pump", "gpio=17=op,dl")},
		"of another board":    {"[pi3]\ngpio=17=op,dl\n", map[string][]board.PowerOnLevel{"pump": pump}, missing("pump", "gpio=17=op,dl")},
		"nonsense":            {"gpio=\ngpio=17\ngpio=99-3=op,dl\ngpio=0-9999999=op\ngpio=x=op\ngpio=17=\ngpio==\n", map[string][]board.PowerOnLevel{"pump": pump}, "warning pump: until the site runs it is not at its safe level: " + file + " has gpio=17=; put gpio=17=op,dl in its place and reboot"},
		"the other level":     {"gpio=17=op,dh\n", map[string][]board.PowerOnLevel{"pump": pump}, "warning pump: until the site runs it is not at its safe level: " + file + " has gpio=17=op,dh; put gpio=17=op,dl in its place and reboot"},
		"an adapter's line":   {"", map[string][]board.PowerOnLevel{"far": {{Pin: "gpiochip7/3"}}}, "note far: gpiochip7/3 is no line of the board's own header: until the site runs, its chip decides where it is; "},
		"no outputs":          {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := machine(t, map[string]string{"proc/device-tree/model": pi, "boot/firmware/config.txt": tt.config}, boardtest.Header())
			if got := listed(b.PowerOn(tt.holds)); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
	if got := machine(t, map[string]string{"boot/firmware/config.txt": ""}).PowerOn(map[string][]board.PowerOnLevel{"pump": pump}); got != nil {
		t.Error("no Raspberry Pi:", got)
	}
	if got := listed(machine(t, map[string]string{"proc/device-tree/model": pi}).PowerOn(map[string][]board.PowerOnLevel{"pump": pump})); !strings.HasPrefix(got, "warning gpio: ") {
		t.Error("no config.txt:", got)
	}
	large := machine(t, map[string]string{"proc/device-tree/model": pi, "boot/firmware/config.txt": strings.Repeat("#\n", 256<<10)})
	if got := listed(large.PowerOn(map[string][]board.PowerOnLevel{"pump": pump})); !strings.Contains(got, "is larger than 256 KiB") {
		t.Error("a large config.txt:", got)
	}
}
