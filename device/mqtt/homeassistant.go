package mqtt

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"agentsite/device"
	"agentsite/device/driver"
)

// An entity is described by www.home-assistant.io/integrations/mqtt/#mqtt-discovery, with long or short names of its
// keys.
type entity struct {
	Name, StateTopic, Template, Unit, Command string
	On, Off, IsOn, IsOff                      string
	Available, Here                           string
	Device, Model                             string
}

// shortKeys maps the short names of keys to the long ones.
var shortKeys = map[string]string{
	"stat_t": "state_topic", "val_tpl": "value_template", "unit_of_meas": "unit_of_measurement", "cmd_t": "command_topic",
	"pl_on":  "payload_on",
	"pl_off": "payload_off", "stat_on": "state_on", "stat_off": "state_off", "avty_t": "availability_topic",
	"pl_avail": "payload_available",
	"dev":      "device", "obj_id": "object_id", "mdl": "model", "mf": "manufacturer", "ids": "identifiers",
	"avty": "availability", "t": "topic",
}

// parseEntity reads a description; false where it is none of use.
func parseEntity(payload []byte) (e entity, ok bool) {
	keys, ok := object(payload)
	if !ok {
		return e, false
	}
	base := word1(keys["~"])
	topic := func(key string) string {
		text := word1(keys[key])
		if rest, is := strings.CutPrefix(text, "~"); is {
			text = base + rest
		} else if rest, is := strings.CutSuffix(text, "~"); is {
			text = rest + base
		}
		return text
	}
	e = entity{
		Name: word1(keys["name"]), StateTopic: topic("state_topic"), Template: word1(keys["value_template"]),
		Unit:    word1(keys["unit_of_measurement"]),
		Command: topic("command_topic"), On: word1(keys["payload_on"]), Off: word1(keys["payload_off"]),
		IsOn:  word1(keys["state_on"]),
		IsOff: word1(keys["state_off"]), Available: topic("availability_topic"), Here: word1(keys["payload_available"]),
	}
	if e.Name == "null" {
		e.Name = ""
	}
	if of, is := object(keys["device"]); is {
		e.Device, e.Model = cmp.Or(word1(of["name"]),
			e.Name), strings.TrimSpace(word1(of["manufacturer"])+" "+word1(of["model"]))
	}
	return e, e.StateTopic != "" && isName(e.Device)
}

// object reads a JSON object with long names of keys.
func object(payload []byte) (map[string]jsontext.Value, bool) {
	var raw map[string]jsontext.Value
	if len(payload) == 0 || len(payload) > maxPayload || !shallow(payload) || json.Unmarshal(payload, &raw) != nil {
		return nil, false
	}
	keys := make(map[string]jsontext.Value, len(raw))
	for key, v := range raw {
		keys[cmp.Or(shortKeys[key], key)] = v
	}
	return keys, true
}

// template matches a template that only takes a value from a JSON message.
var template = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\{\s*value_json((?:\.[A-Za-z_][A-Za-z0-9_]*|\[['"][A-Za-z0-9_:-]+['"]\]|\[[0-9]+\])+)\s*(?:\|\s*(?:is_defined|float|int)\s*)*\}\}$`)
})

// keyBrackets writes the keys of a template as those of a path.
var keyBrackets = strings.NewReplacer(`['`, ".", `']`, "", `["`, ".", `"]`, "")

// pathOf returns the path of a template; false for one that computes.
func pathOf(text string) (string, bool) {
	if text == "" || strings.ReplaceAll(text, " ", "") == "{{value}}" {
		return "", true
	}
	m := template().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", false
	}
	return strings.TrimPrefix(keyBrackets.Replace(m[1]), "."), true
}

// offerHomeAssistant makes entries of devices that describe themselves for Home Assistant, but for those of sites, of
// Tasmota and, where it has described them itself, of Zigbee2MQTT.
func offerHomeAssistant(a access, heard map[string][]byte, zigbee bool) []driver.Found {
	type one struct {
		offer
		what    string
		unequal bool // its entities do not agree about where it says that it is there
		here    string
	}
	all := make(map[string]*one)
	for _, topic := range sorted(heard) {
		levels := strings.Split(topic, "/")
		if levels[0] != "homeassistant" || levels[len(levels)-1] != "config" {
			continue
		}
		e, ok := parseEntity(heard[topic])
		path, simple := pathOf(e.Template)
		if !ok || !simple || strings.HasPrefix(e.StateTopic, ownTopics) || strings.HasPrefix(e.Command, ownTopics) ||
			zigbee && strings.HasPrefix(e.StateTopic, "zigbee2mqtt/") {
			continue
		}
		o := all[e.Device]
		if o == nil {
			o = &one{offer: offer{name: e.Device, every: "10m"}, what: e.Model, here: e.Available}
			all[e.Device] = o
			if e.Available != "" && checkTopic("available", e.Available) == nil && isName(e.Available) && isWord(cmp.Or(e.Here, "online")) {
				o.extra = []string{fmt.Sprintf("available: { topic: %s, on: %s }", quote(e.Available), strconv.Quote(cmp.Or(e.Here, "online")))}
			}
		}
		o.unequal = o.unequal || o.here != e.Available
		if before, id, is := strings.Cut(e.StateTopic, "/BTtoMQTT/"); is && before == "+/+" && isName(id) { // Theengs
			o.kind, o.name = "theengs", id
		}
		o.entity(levels[1], levels[len(levels)-2], path, e)
	}
	var found []driver.Found
	for _, name := range sorted(all) {
		o := all[name]
		if o.unequal || o.here == "" {
			o.extra = nil
		}
		found = append(found, o.found(a, cmp.Or(o.what, "described for Home Assistant"), "")...)
	}
	return found
}

// entity adds a point.
func (o *offer) entity(component, id, path string, e entity) {
	name := device.SuggestName(cmp.Or(e.Name, id))
	if rest := strings.TrimPrefix(name, device.SuggestName(e.Device)+"-"); rest != "" {
		name = rest
	}
	where := "topic: " + quote(e.StateTopic)
	if o.kind == "theengs" {
		where = ""
	} else if checkTopic("topic", e.StateTopic) != nil || !isName(e.StateTopic) {
		return
	}
	if path != "" {
		where = strings.TrimPrefix(where+", path: "+quote(path), ", ")
	}
	on, off := cmp.Or(e.On, "ON"), cmp.Or(e.Off, "OFF")
	isOn, isOff := cmp.Or(e.IsOn, on), cmp.Or(e.IsOff, off)
	if name == "" || where == "" || !isWord(on) || !isWord(off) || !isWord(isOn) || !isWord(isOff) {
		return
	}
	switch {
	case component == "sensor":
		o.number(name, where, e.Unit, nil, nil)
	case component == "binary_sensor":
		o.input(name, fmt.Sprintf("%s, state: on, on: %s, off: %s", where, strconv.Quote(on), strconv.Quote(off)))
	case component == "switch" && e.Command != e.StateTopic && checkTopic("set", e.Command) == nil && isName(e.Command):
		o.output(name, fmt.Sprintf("%s, set: %s, on: %s, off: %s, is_on: %s, is_off: %s, safe: off",
			where, quote(e.Command), strconv.Quote(on), strconv.Quote(off), strconv.Quote(isOn), strconv.Quote(isOff)))
	}
}
