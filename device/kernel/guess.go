package kernel

import (
	"cmp"
	"slices"
	"strings"

	"agentsite/device"
)

// usualPoints are the points of common parts, by what the kernel calls them in IIO or in hwmon.
var usualPoints = map[string][]string{
	"aht10": {"temperature1", "humidity1"}, "bh1750": {"illuminance"}, "bme280": {"humidity", "pressure", "temperature"},
	"bme680": {"humidity", "pressure", "resistance", "temperature"}, "bmp280": {"pressure", "temperature"},
	"dht11": {"humidity", "temperature"}, "hdc1080": {"humidity", "temperature"}, "htu21": {"humidity", "temperature"},
	"lm75": {"temperature1"}, "max31855": {"temperature"}, "scd30": {"concentration_co2", "humidity", "temperature"},
	"sht3x": {"temperature1", "humidity1"}, "sht4x": {"temperature1", "humidity1"}, "si7020": {"humidity", "temperature"},
	"tmp102": {"temperature1"}, "tsl2561": {"illuminance"}, "veml7700": {"illuminance"},
}

// Guess returns the usual points of the part, and the named ones.
func (c *Selector) Guess(named []string) device.Description {
	name := cmp.Or(c.Name, "part of the kernel's "+c.class.name)
	return guess(name, usualPoints[c.Name], named)
}

// Guess returns the temperature, and the named points.
func (c *Thermal) Guess(named []string) device.Description {
	return guess(c.Zone, []string{"temperature"}, named)
}

// Guess returns an event for each key that is written or named.
func (c *Input) Guess(named []string) device.Description {
	d := device.Description{Model: cmp.Or(c.Name, c.Device)}
	for _, name := range sorted(c.Keys, named) {
		d.Points = append(d.Points, device.Point{Name: name, Kind: device.KindEvent, Description: "pressed or moved"})
	}
	return d
}

func guess(model string, usual, named []string) device.Description {
	d := device.Description{Model: printable(model)}
	for _, name := range sorted(usual, named) {
		d.Points = append(d.Points, pointNamed(name))
	}
	return d
}

// sorted returns the valid names of both lists, each once.
func sorted(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.SortFunc(all, natural)
	all = slices.DeleteFunc(all, func(name string) bool { return device.CheckName(name) != nil })
	return slices.Compact(all)
}

// pointNamed returns the point that this package would give that name.
func pointNamed(name string) device.Point {
	for _, ending := range []string{"_alarm", "_fault"} {
		if strings.HasSuffix(name, ending) {
			return device.Point{Name: name, Kind: device.KindState, Description: strings.ReplaceAll(name, "_", " ")}
		}
	}
	p := device.Point{Name: name, Kind: device.KindMeasurement, Description: "a value of the kernel's"}
	what := strings.TrimRight(name, "0123456789-")
	what, _, _ = strings.Cut(what, "_")
	what = strings.TrimRight(what, "0123456789-")
	for _, types := range []map[string]iioType{iioTypes, hwmonTypes} {
		for key, t := range types {
			if cmp.Or(t.name, key) == what {
				p.Unit, p.Description, p.Range = t.unit, t.doc, t.limits
				return p
			}
		}
	}
	return p
}

// Guess returns the usual points of the chip, and the named ones.
func (c *Chip) Guess(named []string) device.Description {
	return guess(c.name, usualPoints[c.name], named)
}
