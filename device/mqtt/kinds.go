package mqtt

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"agentsite/device"
	"agentsite/device/driver"
)

// Places in the topics and commands of kinds.
const (
	placeName    = "{name}"    // of the device there
	placeChannel = "{channel}" // of an output
	placePath    = "{path}"    // of an output
	placePoint   = "{point}"   // the point's own name
)

// kind is a program or firmware that publishes devices, with its topics.
type kind struct {
	title     string
	base      string // of a device
	available []presence
	in        input
	out       output
	timed     string // the command for on where the output has a hold
	first     string // channel 0 in topics
}

// kinds are those that an owner can name; "" has no topics of its own.
var kinds = map[string]kind{
	"": {},
	// www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html: a device publishes its state as JSON, takes commands at
	// set and is asked at get; bridge/state is the will of Zigbee2MQTT itself. Availability is off unless configured.
	"zigbee2mqtt": {
		title: "Zigbee2MQTT", base: "zigbee2mqtt/" + placeName,
		available: []presence{
			{topic: "zigbee2mqtt/bridge/state", path: "state", on: "online", needed: true, together: true},
			{topic: "~/availability", path: "state", on: "online", vouches: true},
		},
		in: input{Topic: "~", Path: placePoint},
		out: output{
			Topic: "~", Path: "state", Set: "~/set", On: `{"{path}":"ON"}`, Off: `{"{path}":"OFF"}`, Payload: `{"{path}":{value}}`,
			Ask: "~/get", AskPayload: `{"{path}":""}`,
		},
	},
	// tasmota.github.io/docs/MQTT: stat has the state after each command and change, tele the sensors, LWT is the will. A
	// command without a payload asks.
	"tasmota": {
		title: "Tasmota", base: placeName,
		available: []presence{{topic: "tele/~/LWT", on: "Online", needed: true, vouches: true}},
		in:        input{Topic: "tele/~/SENSOR"},
		out:       output{Topic: "stat/~/POWER{channel}", Set: "cmnd/~/POWER{channel}", On: "ON", Off: "OFF", Ask: "cmnd/~/POWER{channel}"},
	},
	// shelly-api-docs.shelly.cloud/gen1/#mqtt-support: relay/N has on or off, its command takes the same words, and the
	// command update makes the device publish all.
	"shelly": {
		title: "Shelly", base: "shellies/" + placeName, first: "0",
		available: []presence{{topic: "~/online", on: "true", needed: true, vouches: true}},
		out: output{
			Topic: "~/relay/{channel}", Set: "~/relay/{channel}/command", On: "on", Off: "off", IsOn: "on", IsOff: "off",
			Ask: "~/command", AskPayload: "update",
		},
	},
	// shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Switch and Mqtt: status/switch:N is published where "Generic
	// status update" is on; rpc takes Switch.Set, with the seconds after which it goes off again; command/switch:N takes
	// status_update.
	"shelly2": {
		title: "Shelly", base: placeName, first: "0",
		available: []presence{{topic: "~/online", on: "true", needed: true, vouches: true}},
		out: output{
			Topic: "~/status/switch:{channel}", Path: "output", Set: "~/rpc",
			On:  `{"id":1,"src":"site","method":"Switch.Set","params":{"id":{channel},"on":true}}`,
			Off: `{"id":1,"src":"site","method":"Switch.Set","params":{"id":{channel},"on":false}}`,
			Ask: "~/command/switch:{channel}", AskPayload: "status_update",
		},
		timed: `{"id":1,"src":"site","method":"Switch.Set","params":{"id":{channel},"on":true,"toggle_after":{seconds}}}`,
	},
	// gateway.theengs.io: what a Bluetooth device advertises is published as JSON, by its address without colons.
	"theengs": {
		title: "Theengs", base: "home/TheengsGateway/BTtoMQTT/" + placeName,
		in: input{Topic: "~", Path: placePoint},
	},
}

// kindNames lists what an owner can write.
func kindNames() []string {
	return slices.DeleteFunc(sorted(kinds), func(name string) bool { return name == "" })
}

// input completes an input.
func (k kind) input(name string, in input) input {
	if in.Topic == "" {
		in.Topic = k.in.Topic
		in.Path = cmp.Or(in.Path, driver.Path(strings.ReplaceAll(string(k.in.Path), placePoint, name)))
		if k.title == "Tasmota" {
			in.UnitPath = cmp.Or(in.UnitPath, tasmotaUnitPaths[in.Unit])
		}
	}
	return in
}

// output completes an output.
func (k kind) output(name string, o output) output {
	level := o.Point(name).Kind == device.KindLevel
	if o.Topic == "" {
		o.Topic = k.out.Topic
		if level && k.out.Path != "" {
			o.Path = cmp.Or(o.Path, driver.Path(name))
		}
		o.Path = cmp.Or(o.Path, k.out.Path)
		o.IsOn, o.IsOff = cmp.Or(o.IsOn, k.out.IsOn), cmp.Or(o.IsOff, k.out.IsOff)
	}
	if o.Set == "" {
		o.Set = k.out.Set
		if o.Hold != 0 {
			o.On = cmp.Or(o.On, k.timed)
		}
		o.On, o.Off, o.Payload = cmp.Or(o.On, k.out.On), cmp.Or(o.Off, k.out.Off), cmp.Or(o.Payload, k.out.Payload)
	}
	if o.Ask == "" {
		o.Ask, o.AskPayload = k.out.Ask, cmp.Or(o.AskPayload, k.out.AskPayload)
	}
	channel := strconv.Itoa(o.Channel)
	if o.Channel == 0 {
		channel = k.first
	}
	last := string(o.Path[strings.LastIndex(string(o.Path), ".")+1:])
	fill := strings.NewReplacer(placeChannel, channel, placePath, last)
	for _, text := range []*string{&o.Topic, &o.Set, &o.On, &o.Off, &o.Payload, &o.Ask, &o.AskPayload} {
		*text = fill.Replace(*text)
	}
	return o
}
