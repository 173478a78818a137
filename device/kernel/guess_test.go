package kernel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/device/driver"
)

// TestGuess: a part has its usual points and those that are named, each once, with the unit that the kernel's name
// stands for; names that no point can have are left out.
func TestGuess(t *testing.T) {
	for name, c := range map[string]struct {
		config driver.Guesser
		named  []string
		want   []string
	}{
		"iio":     {&Selector{Name: "bme280", class: iio}, nil, []string{"humidity measurement %", "pressure measurement Pa", "temperature measurement Cel"}},
		"named":   {&Selector{Name: "bme280", class: iio}, []string{"temperature", "voltage0"}, []string{"humidity measurement %", "pressure measurement Pa", "temperature measurement Cel", "voltage0 measurement V"}},
		"unusual": {&Selector{Device: "iio:device0", class: iio}, []string{"co2/x", "Voltage", ""}, nil},
		"gas":     {&Selector{Name: "scd30", class: iio}, nil, []string{"concentration_co2 measurement [ppm]", "humidity measurement %", "temperature measurement Cel"}},
		"hwmon":   {&Selector{Name: "lm75", class: hwmon}, []string{"temperature1_max_alarm"}, []string{"temperature1 measurement Cel", "temperature1_max_alarm state"}},
		"order":   {&Selector{Name: "ads1015", class: iio}, []string{"voltage10", "voltage2"}, []string{"voltage2 measurement V", "voltage10 measurement V"}},
		"chip":    {&Chip{name: "bh1750"}, nil, []string{"illuminance measurement lx"}},
		"thermal": {&Thermal{Zone: "cpu-thermal"}, nil, []string{"temperature measurement Cel"}},
		"input":   {&Input{Name: "gpio-keys", Keys: []string{"enter"}}, []string{"rel_x", "enter"}, []string{"enter event", "rel_x event"}},
	} {
		t.Run(name, func(t *testing.T) {
			desc := c.config.Guess(c.named)
			var got []string
			for _, p := range desc.Points {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Name, p.Kind, p.Unit)))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
			if err := desc.Validate(); err != nil && len(c.want) > 0 {
				t.Error(err)
			}
		})
	}
}
