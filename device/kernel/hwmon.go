package kernel

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentsite/device"
)

const hwmonDevices = "sys/class/hwmon"

// deviceOf returns the device of a folder of /sys/class, by its name below /sys/devices, such
// as 1-0048; "" if there is none.
func deviceOf(folder string) string {
	real, err := filepath.EvalSymlinks(filepath.Join(folder, "device"))
	if err != nil {
		return ""
	}
	return filepath.Base(real)
}

// hwmonTypes are the units of Documentation/ABI/testing/sysfs-class-hwmon, named as
// in iioTypes.
var hwmonTypes = map[string]iioType{
	"temp":     {name: "temperature", unit: "Cel", per: 1000, doc: "temperature", limits: absolute},                           // "millidegree Celsius"
	"in":       {name: "voltage", unit: "V", per: 1000, doc: "voltage at the chip's pin"},                                     // "millivolt"
	"fan":      {name: "fan", unit: "/min", per: 1, doc: "speed of the fan"},                                                  // "revolution/min (RPM)"
	"curr":     {name: "current", unit: "A", per: 1000, doc: "current"},                                                       // "milliampere"
	"power":    {name: "power", unit: "W", per: 1e6, doc: "power"},                                                            // "microWatt"
	"energy":   {name: "energy", unit: "J", per: 1e6, doc: "energy used so far"},                                              // "microJoule"
	"humidity": {name: "humidity", unit: "%", per: 1000, doc: "relative humidity", limits: device.Range{Max: 100}, slack: 20}, // "milli-percent"
}

// hwmonFile is a name such as temp1_crit_alarm.
var hwmonFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(temp|in|fan|curr|power|energy|humidity|intrusion)([0-9]{1,4})_((?:[a-z]+_)?[a-z]+)$`)
})

// addHwmon adds a measurement for each sensor and a state for each alarm.
func (s *sensor) addHwmon(folder, _ string) error {
	files, err := filesIn(folder)
	if err != nil {
		return err
	}
	for _, file := range files {
		m := hwmonFile().FindStringSubmatch(file)
		if m == nil {
			continue
		}
		sensor, item := m[1]+m[2], m[3]
		switch {
		case m[1] == "intrusion" && item != "alarm":
		case item == "input", item == "average" && !slices.Contains(files, sensor+"_input"):
			s.channels = append(s.channels, s.hwmonSensor(m[1], m[2], file, folder, files))
		case item == "alarm", item == "fault", strings.HasSuffix(item, "_alarm"):
			s.channels = append(s.channels, s.hwmonAlarm(m[1], m[2], item, file))
		}
	}
	slices.SortStableFunc(s.channels, func(a, b channel) int { return natural(a.point.Name, b.point.Name) })
	return nil
}

func (s *sensor) hwmonSensor(kind, number, file, folder string, files []string) channel {
	typ := hwmonTypes[kind]
	c := channel{
		point: device.Point{Name: typ.name + number, Kind: device.KindMeasurement, Unit: typ.unit, Description: typ.doc, Range: typ.limits},
		times: 1, per: typ.per, slack: typ.slack,
		value: s.add(file), offset: none, scale: none, fault: none,
	}
	if fault := kind + number + "_fault"; slices.Contains(files, fault) {
		c.fault = s.add(fault)
	}
	c.point.Description += s.label(folder, kind+number)
	return c
}

// hwmonAlarm returns the channel of a flag that the chip sets by its own limits. Reading
// clears most flags.
func (s *sensor) hwmonAlarm(kind, number, item, file string) channel {
	what, doc := kind, "opened"
	if typ, ok := hwmonTypes[kind]; ok {
		what, doc = typ.name, typ.doc
	}
	short := strings.Replace(item, "emergency", "emerg", 1) // a name has at most 24 letters
	return channel{
		point: device.Point{Name: what + number + "_" + short, Kind: device.KindState, Description: doc + ": " + strings.ReplaceAll(item, "_", " ")},
		times: 1, per: 1,
		value: s.add(file), offset: none, scale: none, fault: none,
	}
}
