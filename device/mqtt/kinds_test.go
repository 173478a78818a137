package mqtt

import (
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// documented is a device as its project documents what it publishes and takes.
type documented struct {
	kind, name string
	kept       map[string]string // topics
	says       [][2]string       // when it has started
	on, off    string            // commands, as topic and payload
	follows    func(on bool) [2]string
	ask        string
	input      string // the name of an input
	in         input
	value      float64
}

func watts() driver.InputPoint {
	return driver.InputPoint{Quantity: driver.Quantity{Unit: "W", Range: device.Range{Min: 0, Max: 4000}}}
}

func celsius() driver.InputPoint {
	return driver.InputPoint{Quantity: driver.Quantity{Unit: "Cel", Range: device.Range{Min: -40, Max: 85}}}
}

func word(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

var devices = []documented{
	{ // www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html
		kind: "zigbee2mqtt", name: "kitchen/plug",
		kept: map[string]string{"zigbee2mqtt/bridge/state": `{"state":"online"}`},
		says: [][2]string{{"zigbee2mqtt/kitchen/plug", `{"state":"OFF","power":12.4,"linkquality":99}`}},
		on:   `zigbee2mqtt/kitchen/plug/set {"state":"ON"}`, off: `zigbee2mqtt/kitchen/plug/set {"state":"OFF"}`, ask: `zigbee2mqtt/kitchen/plug/get {"state":""}`,
		follows: func(on bool) [2]string {
			return [2]string{"zigbee2mqtt/kitchen/plug", `{"state":"` + word(on, "ON", "OFF") + `","power":12.4}`}
		},
		input: "power", in: input{InputPoint: watts()}, value: 12.4,
	},
	{ // tasmota.github.io/docs/MQTT
		kind: "tasmota", name: "tasmota_744F2B",
		kept: map[string]string{"tele/tasmota_744F2B/LWT": "Online"},
		says: [][2]string{
			{"tele/tasmota_744F2B/SENSOR", `{"Time":"2026-11-27T10:00:00","DS18B20":{"Id":"01131B123456","Temperature":21.5},"TempUnit":"C"}`},
			{"stat/tasmota_744F2B/POWER", "OFF"},
		},
		on: "cmnd/tasmota_744F2B/POWER ON", off: "cmnd/tasmota_744F2B/POWER OFF", ask: "cmnd/tasmota_744F2B/POWER ",
		follows: func(on bool) [2]string { return [2]string{"stat/tasmota_744F2B/POWER", word(on, "ON", "OFF")} },
		input:   "water", in: input{Path: "DS18B20.Temperature", InputPoint: celsius()}, value: 21.5,
	},
	{ // shelly-api-docs.shelly.cloud/gen1/#mqtt-support
		kind: "shelly", name: "shellyplug-s-1A2B3C",
		kept: map[string]string{"shellies/shellyplug-s-1A2B3C/online": "true"},
		says: [][2]string{{"shellies/shellyplug-s-1A2B3C/relay/0", "off"}, {"shellies/shellyplug-s-1A2B3C/relay/0/power", "63.20"}},
		on:   "shellies/shellyplug-s-1A2B3C/relay/0/command on", off: "shellies/shellyplug-s-1A2B3C/relay/0/command off",
		ask: "shellies/shellyplug-s-1A2B3C/command update",
		follows: func(on bool) [2]string {
			return [2]string{"shellies/shellyplug-s-1A2B3C/relay/0", word(on, "on", "off")}
		},
		input: "power", in: input{Topic: "~/relay/0/power", InputPoint: watts()}, value: 63.2,
	},
	{ // shelly-api-docs.shelly.cloud/gen2/ComponentsAndServices/Switch
		kind: "shelly2", name: "shellyplus1pm-a8032ab12345",
		kept: map[string]string{"shellyplus1pm-a8032ab12345/online": "true"},
		says: [][2]string{{"shellyplus1pm-a8032ab12345/status/switch:0", `{"id":0,"source":"init","output":false,"apower":8.9,"voltage":237.5,"temperature":{"tC":45.3,"tF":113.6}}`}},
		on:   `shellyplus1pm-a8032ab12345/rpc {"id":1,"src":"site","method":"Switch.Set","params":{"id":0,"on":true,"toggle_after":30}}`,
		off:  `shellyplus1pm-a8032ab12345/rpc {"id":1,"src":"site","method":"Switch.Set","params":{"id":0,"on":false}}`,
		ask:  "shellyplus1pm-a8032ab12345/command/switch:0 status_update",
		follows: func(on bool) [2]string {
			return [2]string{"shellyplus1pm-a8032ab12345/status/switch:0", `{"id":0,"source":"MQTT","output":` + word(on, "true", "false") + `,"temperature":{"tC":45.3}}`}
		},
		input: "chip", in: input{Topic: "~/status/switch:0", Path: "temperature.tC", InputPoint: celsius()}, value: 45.3,
	},
	{ // gateway.theengs.io
		kind: "theengs", name: "A4C138012345",
		says:  [][2]string{{"home/TheengsGateway/BTtoMQTT/A4C138012345", `{"id":"A4:C1:38:01:23:45","rssi":-61,"brand":"Xiaomi","model_id":"LYWSD03MMC_ATC","tempc":20.4,"hum":48,"batt":93}`}},
		input: "tempc", in: input{InputPoint: celsius()}, value: 20.4,
	},
}

// TestKinds: a kind and a name are enough for what a project documents.
func TestKinds(t *testing.T) {
	for _, tt := range devices {
		t.Run(tt.kind, func(t *testing.T) {
			b := newFakeBroker(t)
			for topic, payload := range tt.kept {
				b.kept[topic] = payload
			}
			c := &config{Broker: b.url(), Kind: tt.kind, Name: tt.name, brokers: newBrokers(), Inputs: map[string]input{tt.input: tt.in}}
			if tt.on != "" {
				o := output{OutputPoint: driver.OutputPoint{Safe: device.Bool(false)}}
				if strings.Contains(tt.on, "30") {
					o.Hold = 30 * time.Second
				}
				c.Outputs = map[string]output{"relay": o}
			}
			b.device = func(b *fakeBroker, topic, payload string) {
				switch topic + " " + payload {
				case tt.on:
					b.publish(tt.follows(true)[0], tt.follows(true)[1], false)
				case tt.off:
					b.publish(tt.follows(false)[0], tt.follows(false)[1], false)
				}
			}
			d := open(t, c)
			for _, m := range tt.says {
				b.publish(m[0], m[1], false)
			}
			until(t, "a measurement", good(t, d, tt.input, device.Number(tt.value)))
			if tt.on == "" {
				return
			}
			until(t, "off", good(t, d, "relay", device.Bool(false)))
			for _, v := range []bool{true, false} {
				if err := apply(t, d, "relay", device.Bool(v)); err != nil {
					t.Error(err)
				}
			}
			if b.sent(tt.on) != 1 || b.sent(tt.ask) == 0 {
				t.Errorf("%q", b.commands)
			}
			for topic := range tt.kept {
				if tt.kind != "zigbee2mqtt" {
					b.publish(topic, word(tt.kept[topic] == "true", "false", "Offline"), true)
					until(t, "its will", bad(t, d, "relay", "away"))
				}
			}
		})
	}
}

// TestRefusedConfigs: what cannot work, or would confirm itself, is refused by check.
func TestRefusedConfigs(t *testing.T) {
	for _, tt := range []struct {
		key   string
		spoil func(c *config)
	}{
		{"", func(c *config) {}},
		{"", func(c *config) { c.Broker = "mqtts://broker.example.org:8884"; c.CAFile = "/etc/ca.pem" }},
		{"broker", func(c *config) { c.Broker = "mqtt://user:secret@host" }},
		{"broker", func(c *config) { c.Broker = "http://host" }},
		{"broker", func(c *config) { c.Broker = "mqtt://host/path" }},
		{"broker", func(c *config) { c.Broker = "mqtt://host:99999" }},
		{"user", func(c *config) { c.PasswordFile = "x" }},
		{"ca_file", func(c *config) { c.CAFile = "/x" }},
		{"kind", func(c *config) { c.Kind = "zigbe2mqtt" }},
		{"name", func(c *config) { c.Name = "" }},
		{"name", func(c *config) { c.Kind = "" }},
		{"inputs", func(c *config) { c.Inputs, c.Outputs = nil, nil }},
		{"fresh", func(c *config) { c.Fresh = time.Millisecond }},
		{"wildcard", func(c *config) { c.Name = "+" }},
		{"wildcard", func(c *config) { c.Available = &availability{Topic: "a/#"} }},
		{"broker's own", func(c *config) { c.Base = "$SYS" }},
		{"path", func(c *config) { c.Available = &availability{Topic: "a", Path: "$.x"} }},
		{"range", func(c *config) { c.Inputs["power"] = input{} }},
		{"on", func(c *config) { c.Inputs["power"] = input{On: "x", InputPoint: watts()} }},
		{"safe", func(c *config) { c.Outputs["relay"] = output{} }},
		{"hold", func(c *config) { c.Outputs["relay"] = relay(output{On: "on,{seconds}"}) }},
		{"hold", func(c *config) { c.Outputs["relay"] = relay(output{On: "on", Hold: time.Minute}) }},
		{"hold", func(c *config) { c.Outputs["relay"] = relay(output{On: "on,{seconds}", Hold: time.Second}) }},
		{"hold", func(c *config) { c.Outputs["relay"] = relay(output{Hold: time.Minute}) }}, // no command of this kind has a time
		{"payload", func(c *config) { c.Outputs["relay"] = relay(output{Payload: "{value}"}) }},
		{"same command", func(c *config) { c.Outputs["relay"] = relay(output{On: "x", Off: "x"}) }},
		{"set", func(c *config) { c.Outputs["relay"] = relay(output{Set: "~"}) }},                    // its own echo
		{"set", func(c *config) { c.Outputs["relay"] = relay(output{Set: "agentsite/a/lamp/set"}) }}, // a loop
		{"channel", func(c *config) { c.Outputs["relay"] = relay(output{Channel: 32}) }},
		{"payload", func(c *config) {
			c.Outputs["relay"] = output{Payload: "{value}{value}", OutputPoint: driver.OutputPoint{
				Quantity: driver.Quantity{Range: device.Range{Max: 1}}, Safe: device.Number(0)}}
		}},
	} {
		c := (&fakeBroker{ln: nowhere{}}).config()
		tt.spoil(c)
		err := c.Validate()
		if (err != nil) != (tt.key != "") || err != nil && (!strings.Contains(err.Error(), tt.key) || kindOf(err) != device.Invalid) {
			t.Errorf("%+v: %v, want one about %q", c, err, tt.key)
		}
	}
}

func relay(o output) output {
	o.Safe = device.Bool(false)
	return o
}

// FuzzTake: no message breaks a device, or makes a value outside its range.
func FuzzTake(f *testing.F) {
	f.Add([]byte(`{"DS":{"Temperature":21.5},"list":[1,2],"TempUnit":"C"}`))
	f.Add([]byte(`{"DS":{"Temperature":"1e400"},"list":[[[]]]}`))
	f.Add([]byte("\xff{"))
	f.Fuzz(func(t *testing.T, message []byte) {
		c := &config{Broker: "mqtt://a", Available: &availability{Topic: "x", Path: "list.0"}, Inputs: map[string]input{
			"a": {Topic: "x", Path: "DS.Temperature", UnitPath: "TempUnit", InputPoint: celsius()},
			"b": {Topic: "x", Path: "list.1", InputPoint: driver.InputPoint{State: true}},
			"c": {Topic: "x", InputPoint: celsius()},
		}}
		r, err := c.resolve()
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(r, 0)
		d.take("x", message, false)
		for i, p := range d.points {
			if v := d.states[i].value; v.Type() == device.TypeNumber && !p.Range.Contains(v.Number()) {
				t.Errorf("%s = %v", p.Name, v)
			}
		}
	})
}

// TestTasmotaUnits: a number in another unit than the point's is a fault.
func TestTasmotaUnits(t *testing.T) {
	b := newFakeBroker(t)
	b.kept["tele/x/LWT"] = "Online"
	in := func(path, unit string) input {
		wide := driver.Quantity{Unit: unit, Range: device.Range{Min: 0, Max: 2000}}
		return input{Path: driver.Path(path), InputPoint: driver.InputPoint{Quantity: wide}}
	}
	d := open(t, &config{Broker: b.url(), Kind: "tasmota", Name: "x", brokers: newBrokers(), Inputs: map[string]input{
		"air": in("BMP280.Temperature", "Cel"), "hpa": in("BMP280.Pressure", "hPa"), "mmhg": in("BMP280.Pressure", "mm[Hg]"),
	}})
	for _, m := range []struct {
		units     string
		good, bad []string
	}{
		{`"PressureUnit":"hPa","TempUnit":"C"`, []string{"air", "hpa"}, []string{"mmhg"}},
		{`"PressureUnit":"mmHg","TempUnit":"F"`, []string{"mmhg"}, []string{"air", "hpa"}},
	} {
		b.publish("tele/x/SENSOR", `{"BMP280":{"Temperature":70.5,"Pressure":759.8},`+m.units+`}`, false)
		for _, name := range m.bad {
			until(t, name+" with "+m.units, bad(t, d, name, "the unit"))
		}
		for _, name := range m.good {
			want := 759.8
			if name == "air" {
				want = 70.5
			}
			until(t, name+" with "+m.units, good(t, d, name, device.Number(want)))
		}
	}
}
