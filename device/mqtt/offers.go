package mqtt

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/ucum"
)

// zigbeeDevice is an entry of zigbee2mqtt/bridge/devices, as
// www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html has it.
type zigbeeDevice struct {
	Name       string `json:"friendly_name"`
	Type       string `json:"type"`
	Disabled   bool   `json:"disabled"`
	Definition *struct {
		Model       string   `json:"model"`
		Vendor      string   `json:"vendor"`
		Description string   `json:"description"`
		Exposes     []expose `json:"exposes"`
	} `json:"definition"`
}

// expose is an ability of a device: www.zigbee2mqtt.io/guide/usage/exposes.html.
type expose struct {
	Type     string           `json:"type"`
	Name     string           `json:"name"`
	Property string           `json:"property"`
	Access   int              `json:"access"`
	Unit     string           `json:"unit"`
	Min      *float64         `json:"value_min"`
	Max      *float64         `json:"value_max"`
	On       jsontext.Value   `json:"value_on"`
	Off      jsontext.Value   `json:"value_off"`
	Values   []jsontext.Value `json:"values"`
	Features []expose         `json:"features"`
}

// The bits of access.
const (
	published = 1
	settable  = 2
)

// offerZigbee makes entries of the devices of Zigbee2MQTT.
func offerZigbee(a access, payload []byte) []driver.Found {
	var all []driver.Found
	for _, z := range zigbeeDevices(payload) {
		if z.Type == "Coordinator" || z.Disabled || z.Definition == nil || !isName(z.Name) || checkTopic("name", z.Name) != nil {
			continue
		}
		o := offer{kind: "zigbee2mqtt", name: z.Name, every: "10m"}
		for _, e := range z.Definition.Exposes {
			if e.Property == "battery" {
				o.every = "1h"
			}
			for _, f := range append(e.Features, e) {
				o.expose(e.Type, f)
			}
		}
		all = append(all,
			o.found(a, z.Definition.Vendor+" "+z.Definition.Model, device.Clip(printable(z.Definition.Description), 80))...)
	}
	return all
}

// maxDescription bounds the description of one device: decoded, a text needs a hundred times its size of memory.
const maxDescription = 64 << 10

// zigbeeDevices reads the entries one by one, but for those that are too long.
func zigbeeDevices(payload []byte) (all []zigbeeDevice) {
	dec := jsontext.NewDecoder(bytes.NewReader(payload))
	if !shallow(payload) || dec.PeekKind() != '[' {
		return nil
	}
	dec.ReadToken()
	for dec.PeekKind() == '{' && len(all) < maxFound {
		v, err := dec.ReadValue()
		if err != nil {
			break
		}
		var z zigbeeDevice
		if len(v) <= maxDescription && json.Unmarshal(v, &z) == nil && z.Definition != nil {
			all = append(all, z)
		}
	}
	return all
}

// expose adds a point. An output is offered only where off is a safe value beyond doubt: of switches and lights.
func (o *offer) expose(of string, e expose) {
	name := device.SuggestName(e.Property)
	if !isName(e.Property) || name == "" || e.Access&published == 0 || e.Property == "linkquality" || strings.ContainsAny(e.Property, ".$*") {
		return
	}
	where := "path: " + quote(e.Property)
	switch on, off := word1(e.On), word1(e.Off); {
	case e.Type == "numeric":
		o.number(name, where, e.Unit, e.Min, e.Max)
	case e.Type == "binary" && e.Name == "state" && (of == "switch" || of == "light") && e.Access&settable != 0 && on == "ON" && off == "OFF":
		o.output(strings.Replace(name, "state", of, 1), where+", safe: off")
	case e.Type == "binary" && isWord(on) && isWord(off) && on != off:
		o.input(name, fmt.Sprintf("%s, state: on, on: %s, off: %s", where, strconv.Quote(on), strconv.Quote(off)))
	case e.Type == "enum" && len(e.Values) > 0 && len(e.Values) <= 32:
		var values []string
		for _, v := range e.Values {
			text := word1(v)
			if !isWord(text) {
				return
			}
			values = append(values, strconv.Quote(text))
		}
		o.input(name, where+", values: ["+strings.Join(values, ", ")+"]")
	}
}

// word1 returns the text of a JSON text, bool or number.
func word1(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}

// offerTasmota makes an entry of a device of Tasmota: tasmota.github.io/docs/MQTT and its discovery messages, of which
// t is the topic, ft and tp its form, rl the relays and sn an example of its sensors.
func offerTasmota(a access, payload, sensors []byte) []driver.Found {
	var c struct {
		Title  string   `json:"dn"`
		Model  string   `json:"md"`
		Topic  string   `json:"t"`
		Form   string   `json:"ft"`
		Prefix []string `json:"tp"`
		Relays []int    `json:"rl"`
	}
	if len(payload) > maxDescription || !shallow(payload) || json.Unmarshal(payload, &c) != nil || !isName(c.Topic) || checkTopic("name", c.Topic) != nil {
		return nil
	}
	o := offer{kind: "tasmota", name: c.Topic, every: "5m"}
	if c.Form != "%prefix%/%topic%/" || !slices.Equal(c.Prefix, []string{"cmnd", "stat", "tele"}) {
		return []driver.Found{{
			Where: c.Topic + " at " + a.url, What: "Tasmota " + device.Clip(printable(c.Model), 40),
			Says: "its topics have another form (FullTopic); write the topics of its points",
		}}
	}
	relays := 0
	for _, r := range c.Relays {
		if r == 1 {
			relays++
		}
	}
	switch {
	case relays == 1:
		o.output("relay", "safe: off")
	case relays > 1:
		for i, r := range c.Relays[:min(len(c.Relays), 31)] {
			if r == 1 {
				o.output(fmt.Sprintf("relay%d", i+1), fmt.Sprintf("channel: %d, safe: off", i+1))
			}
		}
	}
	o.tasmotaSensors(sensors)
	return o.found(a, "Tasmota "+c.Model, device.Clip(printable(c.Title), 60))
}

// tasmotaUnits are the units of Tasmota's sensors.
var tasmotaUnits = map[string]string{
	"Temperature": "Cel", "DewPoint": "Cel", "Humidity": "%", "Pressure": "hPa", "Illuminance": "lx", "Power": "W",
	"Voltage": "V", "Current": "A",
	"Total": "kW.h", "CarbonDioxide": "[ppm]",
}

// tasmotaUnitPaths has, for each quantity, the path of the unit that Tasmota sends with it (SetOption8, 24 and 139).
var tasmotaUnitPaths = map[string]driver.Path{
	"Cel": "TempUnit", "[degF]": "TempUnit",
	"hPa": "PressureUnit", "mm[Hg]": "PressureUnit", "[in_i'Hg]": "PressureUnit",
}

func (o *offer) tasmotaSensors(payload []byte) {
	var s struct {
		Sensors map[string]jsontext.Value `json:"sn"`
	}
	if len(payload) == 0 || len(payload) > maxDescription || !shallow(payload) || json.Unmarshal(payload, &s) != nil {
		return
	}
	for _, sensor := range sorted(s.Sensors) {
		var values map[string]jsontext.Value
		if json.Unmarshal(s.Sensors[sensor], &values) != nil || !isName(sensor) || strings.Contains(sensor, ".") {
			continue
		}
		for _, value := range sorted(values) {
			unit := tasmotaUnits[value]
			if says := s.Sensors[string(tasmotaUnitPaths[unit])]; says != nil {
				unit, _ = ucum.Known(word1(says))
			}
			if unit == "" || !isName(value) || values[value].Kind() != '0' && values[value].Kind() != 'n' {
				continue
			}
			name := value
			if sensor != "ENERGY" {
				name = sensor + "_" + value
			}
			o.number(device.SuggestName(name), "path: "+quote(sensor+"."+value), unit, nil, nil)
		}
	}
}
