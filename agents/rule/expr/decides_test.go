package expr

import (
	"strings"
	"testing"

	"agentsite/device"
)

// TestDecides: the points on which a result depends as it is.
func TestDecides(t *testing.T) {
	w := &world{samples: map[string]sample{
		"climate/temperature": {device.Number(20), 0, true}, "bed-2/soil": {device.Number(30), 0, true}, "lamp/on": {device.Bool(true), 0, true},
	}}
	for text, want := range map[string]string{
		"climate/temperature < 5 Cel":                             "climate/temperature",
		"climate/temperature < 5 Cel and bed-2/soil < 50 %":       "climate/temperature",
		"bed-2/soil < 50 % and climate/temperature < 5 Cel":       "climate/temperature",
		"bed-2/soil < 50 % and climate/temperature > 5 Cel":       "bed-2/soil climate/temperature",
		"climate/temperature < 5 Cel or lamp/on":                  "lamp/on",
		"climate/temperature < 5 Cel or bed-2/soil > 50 %":        "climate/temperature bed-2/soil",
		"not (climate/temperature < 5 Cel and bed-2/soil < 50 %)": "climate/temperature",
		"tank/depth > 1 m and climate/temperature < 5 Cel":        "climate/temperature",
		"known(tank/depth)":                                       "tank/depth",
	} {
		p := mustCompile(t, text)
		var got []string
		for _, i := range p.Decides(w.of(p)) {
			got = append(got, p.Points()[i])
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s, want %s", text, s, want)
		}
	}
}
