package mqtt

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

// described are discovery messages as the projects document them.
var described = map[string]string{
	"zigbee2mqtt/bridge/devices": `[
		{"ieee_address":"0x00124b0024c2f9a1","type":"Coordinator","friendly_name":"Coordinator","definition":null},
		{"ieee_address":"0x00158d00018255df","type":"EndDevice","friendly_name":"cellar/air","supported":true,"definition":{
			"model":"WSDCGQ01LM","vendor":"Xiaomi","description":"Mi temperature and humidity sensor","exposes":[
			{"type":"numeric","name":"battery","property":"battery","unit":"%","value_min":0,"value_max":100,"access":1},
			{"type":"numeric","name":"temperature","property":"temperature","unit":"°C","value_min":-1e300,"value_max":1e300,"access":1},
			{"type":"numeric","name":"linkquality","property":"linkquality","unit":"lqi","value_min":0,"value_max":255,"access":1}]}},
		{"type":"Router","friendly_name":"plug","definition":{"model":"ZNCZ02LM","vendor":"Xiaomi","description":"plug","exposes":[
			{"type":"switch","features":[{"type":"binary","name":"state","property":"state","value_on":"ON","value_off":"OFF","value_toggle":"TOGGLE","access":7}]},
			{"type":"numeric","name":"power","property":"power","unit":"W","access":5},
			{"type":"binary","name":"contact","property":"contact","value_on":false,"value_off":true,"access":1},
			{"type":"enum","name":"mode","property":"mode","values":["a","b"],"access":1},
			{"type":"enum","name":"effect","property":"effect","values":["blink"],"access":2},
			{"type":"composite","name":"color_xy","property":"color","features":[{"type":"numeric","name":"x","property":"x","access":7}]}]}},
		{"type":"Router","friendly_name":"evil\" }, safe: on, {","definition":{"exposes":[{"type":"numeric","property":"x\"","unit":"W","access":1}]}},
		{"type":"Router","friendly_name":"#","definition":{"exposes":[{"type":"numeric","property":"power","unit":"W","access":1}]}}]`,
	"tasmota/discovery/600194744F2B/config":  `{"ip":"192.168.1.7","dn":"Tasmota","fn":["Tasmota",null],"hn":"tasmota-744F2B-3883","mac":"600194744F2B","md":"Sonoff POW","ofln":"Offline","onln":"Online","state":["OFF","ON","TOGGLE","HOLD"],"t":"tasmota_744F2B","ft":"%prefix%/%topic%/","tp":["cmnd","stat","tele"],"rl":[1,0,0],"ver":1}`,
	"tasmota/discovery/600194744F2B/sensors": `{"sn":{"Time":"2026-11-27T10:00:00","ENERGY":{"TotalStartTime":"2026","Total":1.2,"Power":null,"Factor":0.9},"DS18B20":{"Id":"01131B","Temperature":20.1},"BMP280":{"Pressure":759.8},"PressureUnit":"mmHg","TempUnit":"C"},"ver":1}`,
	"shellies/shelly1-1A2B3C/online":         "true",
	"shellies/shelly1-away/online":           "false",
	"homeassistant/sensor/A4C138-tempc/config": `{"stat_t":"+/+/BTtoMQTT/A4C138012345","dev_cla":"temperature","unit_of_meas":"°C","name":"tempc","uniq_id":"A4C138-tempc",
		"val_tpl":"{{ value_json.tempc | is_defined }}","device":{"identifiers":["A4C138012345"],"name":"LYWSD03MMC","mf":"Xiaomi","mdl":"ATC"}}`,
	"homeassistant/switch/garden/pump/config": `{"~":"garden","name":"pump","stat_t":"~/state","cmd_t":"~/set","avty_t":"~/status","val_tpl":"{{ value_json['pump'] }}","dev":{"name":"garden","ids":"g"}}`,
	"homeassistant/sensor/garden/x/config":    `{"name":"x","stat_t":"garden/x","unit_of_meas":"V","val_tpl":"{{ value_json.x * 2 }}","dev":{"name":"garden"}}`,
	"homeassistant/switch/own/lamp/config":    `{"name":"lamp","stat_t":"agentsite/site/lamp","cmd_t":"agentsite/site/lamp/set","dev":{"name":"site"}}`,
	"homeassistant/sensor/0x1/power/config":   `{"name":"power","stat_t":"zigbee2mqtt/plug","val_tpl":"{{ value_json.power }}","unit_of_meas":"W","dev":{"name":"plug"}}`,
}

// TestOffers: an entry for each device that describes itself, with units and ranges; outputs with off as safe.
func TestOffers(t *testing.T) {
	heard := make(map[string][]byte)
	for topic, payload := range described {
		heard[topic] = []byte(payload)
	}
	want := map[string]string{
		"cellar-air":     `{ driver: mqtt, broker: mqtt://10.0.0.5, kind: zigbee2mqtt, name: cellar/air, every: 1h, inputs: { battery: { path: battery, unit: "%", range: 0..100 }, temperature: { path: temperature, unit: "Cel", range: -40..125 } } }`,
		"plug":           `{ driver: mqtt, broker: mqtt://10.0.0.5, kind: zigbee2mqtt, name: "plug", every: 10m, inputs: { power: { path: "power", unit: "W", range: -25000..25000 }, contact: { path: contact, state: on, on: "false", off: "true" }, mode: { path: "mode", values: ["a", "b"] } }, outputs: { switch: { path: "state", safe: off } } }`,
		"tasmota_744f2b": `{ driver: mqtt, broker: mqtt://10.0.0.5, kind: tasmota, name: tasmota_744F2B, every: 5m, inputs: { bmp280_pressure: { path: BMP280.Pressure, unit: "mm[Hg]", range: 225..825 }, ds18b20_temperature: { path: DS18B20.Temperature, unit: "Cel", range: -40..125 }, power: { path: ENERGY.Power, unit: "W", range: -25000..25000 }, total: { path: ENERGY.Total, unit: "kW.h", range: 0..1000000 } }, outputs: { relay: { safe: off } } }`,
		"shelly1-1a2b3c": `{ driver: mqtt, broker: mqtt://10.0.0.5, kind: shelly, name: shelly1-1A2B3C, every: 10m, outputs: { relay: { safe: off } } }`,
		"a4c138012345":   `{ driver: mqtt, broker: mqtt://10.0.0.5, kind: theengs, name: A4C138012345, every: 10m, inputs: { tempc: { path: "tempc", unit: "Cel", range: -40..125 } } }`,
		"garden":         `{ driver: mqtt, broker: mqtt://10.0.0.5, every: 10m, available: { topic: garden/status, on: "online" }, outputs: { pump: { topic: garden/state, path: "pump", set: garden/set, on: "ON", off: "OFF", is_on: "ON", is_off: "OFF", safe: off } } }`,
	}
	for _, f := range offers(access{url: "mqtt://10.0.0.5"}, heard) {
		if f.YAML != want[f.Name] {
			t.Errorf("%s at %s: %s", f.Name, f.Where, f.YAML)
		}
		delete(want, f.Name)
	}
	for name := range want {
		t.Errorf("%s is not offered", name)
	}
}

// TestSeek: a broker is heard, and nothing is published there.
func TestSeek(t *testing.T) {
	b := newFakeBroker(t)
	b.kept["zigbee2mqtt/bridge/devices"] = described["zigbee2mqtt/bridge/devices"]
	b.kept["zigbee2mqtt/bridge/state"] = `{"state":"online"}`
	all := newBrokers()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	heard, _ := listen(ctx, access{url: b.url()})
	if n := len(offers(access{url: b.url()}, heard)); n != 2 {
		t.Errorf("%d devices", n)
	}
	c := b.config()
	c.brokers = all
	open(t, c)
	known := false
	all.mu.Lock()
	for a := range all.all {
		known = a.url == b.url()
	}
	all.mu.Unlock()
	until(t, "the open device asks, and nobody else",
		func() bool { b.mu.Lock(); defer b.mu.Unlock(); return known && len(b.commands) == 1 })
	b.do(func() { b.refuse = 5 })
	if _, f := listen(ctx, access{url: b.url()}); len(f) != 1 || f[0].YAML != "" || f[0].Says == "" {
		t.Errorf("%+v", f)
	}
}

// TestLargeDescriptions: what a broker says of one device is bounded before it is decoded.
func TestLargeDescriptions(t *testing.T) {
	list := func(open, one, end string) []byte {
		return []byte(open + strings.Repeat(one+",", (heardMessage-1000)/(len(one)+1)) + one + end)
	}
	for topic, payload := range map[string][]byte{
		"zigbee2mqtt/bridge/devices":       list(`[{"friendly_name":"a","definition":{"exposes":[`, "{}", "]}}]"),
		"tasmota/discovery/112233/config":  list(`{"t":"a","rl":[`, "1", "]}"),
		"tasmota/discovery/112233/sensors": list(`{"sn":{"a":[`, "{}", "]}}"),
		"homeassistant/sensor/a/config":    list(`{"dev":[`, "{}", "]}"),
	} {
		heard := map[string][]byte{topic: payload}
		if strings.HasSuffix(topic, "/sensors") {
			heard["tasmota/discovery/112233/config"] = []byte(described["tasmota/discovery/600194744F2B/config"])
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		offers(access{url: "mqtt://a"}, heard)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 5*heardMessage {
			t.Errorf("%s: %d MB", topic, n>>20)
		}
	}
}

// FuzzOffers: no description breaks the search, and none gets out of its quotes.
func FuzzOffers(f *testing.F) {
	for topic, payload := range described {
		f.Add(topic, []byte(payload))
	}
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		for _, o := range offers(access{url: "mqtt://a"}, map[string][]byte{topic: payload}) {
			if strings.ContainsAny(o.YAML+o.Where+o.What, "\n\r\x00") || len(o.YAML) > 1<<16 || strings.Count(o.YAML, "driver:") > 1 && !strings.Contains(string(payload), "driver:") {
				t.Errorf("%q", o)
			}
		}
	})
}

// TestOffersNames: two properties whose names differ in what a point's name cannot have are two points.
func TestOffersNames(t *testing.T) {
	found := offers(access{url: "mqtt://10.0.0.5"}, map[string][]byte{"zigbee2mqtt/bridge/devices": []byte(
		`[{"type":"Router","friendly_name":"air","definition":{"exposes":[
		{"type":"numeric","property":"co2","unit":"ppm","access":1},{"type":"numeric","property":"CO2","unit":"ppm","access":1}]}}]`)})
	if len(found) != 1 || !strings.Contains(found[0].YAML, " co2: ") || !strings.Contains(found[0].YAML, " co2-2: ") {
		t.Errorf("it is offered as %+v", found)
	}
}
