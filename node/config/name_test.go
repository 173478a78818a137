package config

import (
	"fmt"
	"strings"
	"testing"

	"agentsite/device"
)

// TestPointName: a point of any kind can have a name for people, of at most 64 printable characters.
func TestPointName(t *testing.T) {
	desc := device.Description{Points: []device.Point{
		{Name: "fan", Kind: device.KindState}, {Name: "lamp", Kind: device.KindSwitch, Safe: device.Bool(false)}, {Name: "air", Kind: device.KindMeasurement},
	}}
	for name, ok := range map[string]bool{
		"Lüfter, 1. Stock": true, strings.Repeat("ä", 64): true, "": false, strings.Repeat("a", 65): false,
		`a\nb`: false, `\u202Eb`: false, `a\u2066`: false, `\e[2J`: false,
	} {
		for i, p := range desc.Points {
			text := fmt.Sprintf("site: { name: a }\ndevices:\n  p:\n    driver: probe\n    points: { %s: { name: \"%s\" } }\n", p.Name, name)
			site, err := Parse("a.yaml", []byte(text), fakes())
			if err == nil {
				var points Points
				if points, err = site.Devices[0].Points(desc); err == nil && points.Description.Points[i].Title != name {
					t.Errorf("%s is called %q, not %q", p.Name, points.Description.Points[i].Title, name)
				}
			}
			if (err == nil) != ok {
				t.Errorf("%s called %q: %v", p.Name, name, err)
			}
		}
	}
}
