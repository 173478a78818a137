package scan

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/device/board/boardtest"
	chips "agentsite/device/chip"
	"agentsite/device/gpio"
	"agentsite/device/sysfs"
)

// node returns the files of a HAT below proc/device-tree, as the firmware writes them. The texts end with a zero byte.
func node(name, vendor, product, id string) map[string]string {
	at := "proc/device-tree/" + name + "/"
	return map[string]string{
		at + "name": "hat\x00", at + "vendor": vendor + "\x00", at + "product": product + "\x00",
		at + "product_id":  id + "\x00",
		at + "product_ver": "0x0001\x00", at + "uuid": "9daeea78-0000-0774-000a-582369ac3e02\x00",
	}
}

// scanned scans a tree of files, and lists what is found of HATs and on their lines and buses.
func scanned(t *testing.T, trees ...map[string]string) (all []Found) {
	t.Helper()
	files := map[string]string{}
	for _, tree := range trees {
		for path, text := range tree {
			files[path] = text
		}
	}
	root := tree(t, files)
	b := boardtest.Machine{Root: root}.Board()
	s := Scan{Board: b, Root: sysfs.Root(root), Drivers: append(chips.Drivers(b), gpio.Drivers(b)...)}
	return s.hats()
}

func TestHATs(t *testing.T) {
	got := func(trees ...map[string]string) string {
		var lines []string
		for _, f := range scanned(t, trees...) {
			line := fmt.Sprintf("%s %s: %s", f.Confidence, f.Where, f.What)
			for _, d := range f.Devices {
				line += " | " + d.Name + ": " + d.YAML
			}
			lines = append(lines, line)
		}
		return strings.Join(lines, "\n")
	}
	if all := got(map[string]string{"proc/device-tree/model": "Raspberry Pi 4", "proc/device-tree/hat-like/status": "okay"}); all != "" {
		t.Errorf("without a HAT: %s", all)
	}
	const juice = `certain hat: HAT PiJuice HAT by Pi Supply
likely i2c-1/0x14: battery of the PiJuice | ups: { driver: pijuice, bus: i2c-1, address: 0x14 }`
	if all := got(node("hat", "Pi Supply", "PiJuice HAT", "0x0003")); all != juice {
		t.Errorf("got:\n%s\nwant:\n%s", all, juice)
	}
	// stacked, one of them known by its number only, and one that says what it likes
	all := got(node("hat", "SunFounder", "any", "0x0774"), node("hat_1", "Raspberry Pi", "Sense HAT", "0x0001"),
		node("hat_2", "x\x1b[31m\u202e", strings.Repeat("y", 300), "zero"))
	want := "certain hat: HAT any by SunFounder\ncertain hat_1: HAT Sense HAT by Raspberry Pi\n" +
		"certain hat_2: HAT " + strings.Repeat("y", 60) + " by x[31m"
	if all != want {
		t.Errorf("got:\n%s\nwant:\n%s", all, want)
	}
}

// TestHATTable: each row has a source, and each device a driver; an output is offered without a safe value.
func TestHATTable(t *testing.T) {
	known := map[string]bool{}
	for _, h := range hats {
		if h.source == "" || h.says == "" || h.vendor == "" || (h.product == "") == (h.id == 0) {
			t.Errorf("%+v", h)
		}
		key := fmt.Sprint(h.vendor, h.product, h.id)
		if known[key] {
			t.Errorf("%s is there twice", key)
		}
		known[key] = true
		for _, f := range scanned(t, node("hat", h.vendor, h.product, fmt.Sprintf("%#04x", h.id)))[1:] {
			if len(f.Devices) != 1 || strings.Contains(f.Devices[0].YAML, "safe:") {
				t.Errorf("%+v", f)
			}
		}
	}
	for _, b := range unmarked {
		if b.source == "" || boardOf(b.part+"0", b.address) == "" {
			t.Errorf("%+v", b)
		}
	}
}
