package mqtt

import (
	"math"
	"slices"
	"strings"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Platforms of Home Assistant that are used.
const (
	sensor       = "sensor"
	binarySensor = "binary_sensor"
	switches     = "switch"
	number       = "number"
	light        = "light"
	valve        = "valve"
	notifier     = "notify"
	image        = "image"
	button       = "button"
	automation   = "device_automation"
	event        = "event"
)

// object is a JSON object as Home Assistant reads it. Names and values are those of its MQTT discovery:
// https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
type object = map[string]any

// platform returns the platform of Home Assistant that shows a point; "" for none.
func (b *bridge) platform(p agents.Point, offer *agents.Offer, moves bool) string {
	reads := slices.Contains(offer.Read, p.Point)
	switch p.Kind {
	case device.KindSwitch, device.KindLevel:
		switch {
		case !reads: // its state could not be shown
			return ""
		case moves && slices.Contains(b.Lights, p.Point) && (p.Kind == device.KindSwitch || p.Min != nil && *p.Min == 0 && *p.Max >= 1):
			return light
		case moves && slices.Contains(b.Valves, p.Point) && (p.Kind == device.KindSwitch || whole(p.Min) && whole(p.Max)):
			return valve
		case moves && p.Kind == device.KindSwitch:
			return switches
		case moves:
			return number
		case p.Kind == device.KindSwitch:
			return binarySensor
		}
		return sensor
	case device.KindMeasurement:
		if reads {
			return sensor
		}
	case device.KindState:
		switch {
		case !reads:
		case len(p.Values) > 0:
			return sensor
		default:
			return binarySensor
		}
	case device.KindEvent:
		if reads {
			return automation
		}
	case device.KindText:
		if slices.Contains(offer.Show, p.Point) {
			return notifier
		}
	case device.KindImage:
		if slices.Contains(offer.Capture, p.Point) {
			return image
		}
	}
	return ""
}

func whole(n *float64) bool { return n != nil && *n == math.Trunc(*n) && math.Abs(*n) < 1e6 }

// components describes the points and the skills; with mu.
func (b *bridge) components() object {
	components := object{}
	for _, address := range b.order {
		if p := b.points[address]; p != nil && p.platform != "" {
			b.component(components, p)
		}
	}
	b.describeSkills(components, b.there())
	if types := b.eventTypes(); len(types) > 0 {
		components["happened"] = object{
			"platform": event, "unique_id": b.world.ID + ".happened", "name": "happened",
			"availability": []object{b.there()}, "availability_mode": "all", "state_topic": b.base() + "/happened",
			"event_types": types,
		}
	}
	return components
}

// discovery describes the site as one device; with mu.
func (b *bridge) discovery() object {
	components := b.components()
	for key, platform := range b.gone {
		if components[key] == nil {
			components[key] = object{"platform": platform} // and nothing else: it is removed
		}
	}
	return object{
		"device": object{
			"identifiers": []string{b.world.ID}, "name": b.world.Site, "manufacturer": "agentsite", "model": "agentsite",
			"sw_version": b.world.Version,
		},
		"origin":     object{"name": "agentsite", "sw_version": b.world.Version},
		"components": components, "qos": 1,
	}
}

// platforms returns the components of the site as it is, with mu.
func (b *bridge) platforms() map[string]string {
	all := make(map[string]string)
	for key, c := range b.components() {
		all[key], _ = c.(object)["platform"].(string)
	}
	return all
}

// component adds what a point is to components.
func (b *bridge) component(components object, p *point) {
	key, topic := keyOf(p.Point.Point), b.topic(p.Point.Point)
	name := p.Name
	if name == "" {
		name = strings.ReplaceAll(p.Point.Point, "/", " ")
	}
	if p.platform == automation {
		components[key] = object{
			"platform": event, "unique_id": b.world.ID + "." + key, "name": name, "availability": []object{b.there()},
			"availability_mode": "all",
			"state_topic":       topic + "/event", "event_types": []string{"on", "off"}, "value_template": `{"event_type": "{{ value }}"}`,
		}
		for _, value := range []string{"on", "off"} {
			components[key+"."+value] = object{
				"platform": automation, "automation_type": "trigger", "topic": topic + "/event", "type": value, "subtype": name,
				"payload": value,
			}
		}
		return
	}
	there := b.there()
	c := object{
		"platform": p.platform, "unique_id": b.world.ID + "." + key, "name": name,
		"availability": []object{there}, "availability_mode": "all",
	}
	components[key] = c
	switch p.platform {
	case notifier:
		c["command_topic"] = topic + "/set"
		return
	case image:
		c["image_topic"] = topic + "/image"
		components[key+".take"] = object{
			"platform": button, "unique_id": b.world.ID + "." + key + ".take", "name": name + ": take a picture",
			"availability": []object{there}, "availability_mode": "all", "command_topic": topic + "/capture",
		}
		return
	}
	c["availability"] = []object{there, {
		"topic": topic, "value_template": "{{ 'online' if value_json.quality == 'good' else 'offline' }}",
	}}
	c["state_topic"], c["json_attributes_topic"] = topic, topic
	plain, onOff := "{{ value_json.value }}", "{{ 'ON' if value_json.value else 'OFF' }}"
	c["value_template"] = plain
	unit, class := unitOf(p.Point)
	if p.platform != sensor && p.platform != binarySensor {
		c["command_topic"] = topic + "/set"
	}
	switch p.platform {
	case sensor:
		switch {
		case len(p.Values) > 0:
			c["device_class"], c["options"] = "enum", p.Values
			return
		case class == "energy":
			c["state_class"] = "total_increasing"
		default:
			c["state_class"] = "measurement"
		}
		set(c, "unit_of_measurement", unit)
		set(c, "device_class", class)
	case number:
		set(c, "unit_of_measurement", unit)
		set(c, "device_class", class)
		c["min"], c["max"] = *p.Min, *p.Max
		c["step"] = step(*p.Max - *p.Min)
	case binarySensor, switches:
		c["value_template"] = onOff
	case light:
		if p.Kind == device.KindSwitch {
			delete(c, "value_template")
			c["state_value_template"] = onOff
			return
		}
		delete(c, "value_template")
		c["state_value_template"] = "{{ 'ON' if value_json.value > 0 else 'OFF' }}"
		c["on_command_type"] = "brightness"
		c["brightness_command_topic"], c["brightness_state_topic"], c["brightness_value_template"] = topic+"/set", topic, plain
		c["brightness_scale"] = int(*p.Max)
	case valve:
		if p.Kind == device.KindSwitch {
			c["payload_open"], c["payload_close"] = "ON", "OFF"
			c["state_open"], c["state_closed"] = "ON", "OFF"
			c["value_template"] = onOff
			return
		}
		c["reports_position"], c["position_open"], c["position_closed"] = true, int(*p.Max), int(*p.Min)
	}
}

// there says whether the site is there.
func (b *bridge) there() object {
	return object{"topic": b.status(), "payload_available": online, "payload_not_available": offline}
}

// set sets a key that has a value.
func set(c object, key, value string) {
	if value != "" {
		c[key] = value
	}
}

// step returns the step of a number that has that many between its ends: a power of ten, at least 1000 of them.
func step(span float64) float64 {
	if span <= 0 {
		return 1
	}
	return max(0.001, math.Pow10(int(math.Floor(math.Log10(span)))-3)) // Home Assistant takes 0.001 at least
}

// keyOf returns the name of a point's component. A dot is in no name of a point.
func keyOf(address string) string { return strings.ReplaceAll(address, "/", ".") }

// The most that is looked at of a description on the broker.
const maxGone = 512

// described looks at the description of the site that the broker has. What it has too many is described as removed, and
// then left out: Home Assistant removes it then. This message may come from anybody, and is only a list of names.
func (b *bridge) described(text []byte) {
	var has struct {
		Components map[string]map[string]jsontext.Value `json:"components"`
	}
	if len(text) == 0 || json.Unmarshal(text, &has) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.platforms()
	gone := make(map[string]string)
	left := false
	for key, c := range has.Components {
		var platform string
		if json.Unmarshal(c["platform"], &platform) != nil || !isWord(key, ".") || !isWord(platform, "") {
			continue
		}
		switch removed := len(c) == 1; {
		case now[key] != "": // it is there
		case removed: // it was told
			left = true
		case len(gone) < maxGone:
			gone[key] = platform
		}
	}
	if len(gone) > 0 || left && len(b.gone) > 0 {
		b.gone = gone
		b.everything()
	}
}
