package mqtt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// What Home Assistant takes, by the schemas of homeassistant/components/mqtt in home-assistant/core: schemas.py (device,
// origin, availability, common keys), and the file of each platform with the keys that it requires marked by "!".
// Every key of a payload outside of these would be ignored there without a word.
var (
	common = "platform unique_id name availability availability_mode json_attributes_topic qos encoding device_class value_template"
	keys   = map[string]string{
		"sensor":            common + " state_topic! unit_of_measurement state_class options",
		"binary_sensor":     common + " state_topic! payload_on payload_off",
		"switch":            common + " command_topic! state_topic payload_on payload_off",
		"number":            common + " command_topic! state_topic min max step mode unit_of_measurement",
		"light":             common + " command_topic! state_topic state_value_template brightness_command_topic brightness_state_topic brightness_value_template brightness_scale on_command_type",
		"valve":             common + " command_topic state_topic payload_open payload_close state_open state_closed reports_position position_open position_closed",
		"notify":            common + " command_topic!",
		"image":             common + " image_topic content_type",
		"event":             common + " state_topic! event_types!",
		"button":            common + " command_topic! payload_press",
		"device_automation": "platform automation_type! topic! type! subtype! payload qos",
	}
	deviceKeys = "identifiers name manufacturer model sw_version"
	originKeys = "name! sw_version"
	// Units of a device class: homeassistant/components/sensor/const.py (00eb6680), DEVICE_CLASS_UNITS. Those of number are
	// the same. A pair that is not in it is refused since 2025.7 (issue 148061). Of the two ways to write micro, µg/m³ with
	// U+00B5 is taken by all versions: those since pull request 144853 translate it.
	classUnits = map[string]string{
		"temperature": "°C °F K", "humidity": "%", "moisture": "%", "battery": "%", "illuminance": "lx",
		"voltage": "V mV µV kV MV", "current": "A mA",
		"power": "mW W kW MW GW TW BTU/h", "energy": "J kJ MJ GJ mWh Wh kWh MWh GWh TWh cal kcal Mcal Gcal",
		"frequency": "Hz kHz MHz GHz", "duration": "d h min s ms",
		"distance": "km m cm mm mi nmi yd in ft", "speed": "ft/s in/d in/h in/s km/h kn m/s mph mm/d mm/s",
		"weight":   "kg g mg µg oz lb st",
		"pressure": "cbar bar hPa mmHg inHg inH₂O kPa mbar Pa mPa psi", "volume_storage": "ft³ CCF m³ L mL gal fl. oz. MCF",
		"volume_flow_rate": "ft³/min m³/h m³/min m³/s gal/min gal/h gal/d L/min L/h L/s mL/s",
		"data_size":        "bit kbit Mbit Gbit B kB MB GB TB PB EB ZB YB KiB MiB GiB TiB PiB EiB ZiB YiB",
		"carbon_dioxide":   "ppm",
		"pm1":              "µg/m³", "pm10": "µg/m³", "pm25": "µg/m³",
	}
)

// has checks the keys of an object.
func has(what string, o map[string]any, takes string) (wrong []string) {
	all := strings.Fields(takes)
	for key := range o {
		if !slices.ContainsFunc(all, func(k string) bool { return strings.TrimSuffix(k, "!") == key }) {
			wrong = append(wrong, what+" does not take "+key)
		}
	}
	for _, key := range all {
		if name, required := strings.CutSuffix(key, "!"); required && o[name] == nil {
			wrong = append(wrong, what+" needs "+name)
		}
	}
	return wrong
}

// plan is a bridge with a point of each kind, in each unit, of which it may move those named.
func plan(t *testing.T, moves, lights, valves []string) map[string]map[string]any {
	b := newBridge(&Agent{Discovery: "homeassistant", Lights: lights, Valves: valves, world: World{ID: "agentsite-test", Site: "garden"}}, agents.Principal{}, nil, nil)
	zero, hundred := 0.0, 100.0
	all := []agents.Point{
		{Point: "a/switch", Kind: device.KindSwitch, Safe: device.Bool(false)},
		{Point: "a/level", Kind: device.KindLevel, Unit: "%", Min: &zero, Max: &hundred, Safe: device.Number(0)},
		{Point: "a/state", Kind: device.KindState}, {Point: "a/mode", Kind: device.KindState, Values: []string{"x", "y"}},
		{Point: "a/event", Kind: device.KindEvent},
		{Point: "a/text", Kind: device.KindText}, {Point: "a/image", Kind: device.KindImage, Name: "the yard"},
	}
	for code := range units {
		all = append(all, agents.Point{Point: fmt.Sprintf("u/u%x", code), Kind: device.KindMeasurement, Unit: code})
	}
	for _, name := range []string{"humidity", "soil_moisture", "battery"} {
		all = append(all, agents.Point{Point: "n/" + name, Kind: device.KindMeasurement, Unit: "%"})
	}
	all = append(all, agents.Point{Point: "n/co2", Kind: device.KindMeasurement, Unit: "[ppm]"}, agents.Point{Point: "n/pm25", Kind: device.KindMeasurement, Unit: "ug/m3"}, agents.Point{Point: "n/odd", Kind: device.KindMeasurement, Unit: "[odd]"})
	offer := &agents.Offer{Show: []string{"a/text"}, Capture: []string{"a/image"}}
	for _, p := range all {
		offer.Read = append(offer.Read, p.Point)
		b.order = append(b.order, p.Point)
		b.points[p.Point] = &point{Point: p, platform: b.platform(p, offer, slices.Contains(moves, p.Point))}
	}
	text, err := json.Marshal(b.discovery())
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Device     map[string]any            `json:"device"`
		Origin     map[string]any            `json:"origin"`
		Components map[string]map[string]any `json:"components"`
		QoS        int                       `json:"qos"`
	}
	if err := json.Unmarshal(text, &d, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	wrong := append(has("device", d.Device, deviceKeys), has("origin", d.Origin, originKeys)...)
	ids := map[any]bool{}
	for key, c := range d.Components {
		platform := fmt.Sprint(c["platform"])
		if keys[platform] == "" {
			t.Fatalf("%s is a %s", key, platform)
		}
		wrong = append(wrong, has(key+" ("+platform+")", c, keys[platform])...)
		if platform != automation {
			if ids[c["unique_id"]] || c["unique_id"] == nil {
				wrong = append(wrong, key+" has the ID of another")
			}
			ids[c["unique_id"]] = true
			for _, a := range c["availability"].([]any) {
				wrong = append(wrong,
					has("availability", a.(map[string]any), "topic! payload_available payload_not_available value_template")...)
			}
		}
		unit, _ := c["unit_of_measurement"].(string)
		if class, _ := c["device_class"].(string); class != "" && class != "enum" && !slices.Contains(strings.Fields(classUnits[class]), unit) {
			wrong = append(wrong, fmt.Sprintf("%s: %s is no unit of %s", key, unit, class))
		}
		// DEVICE_CLASS_STATE_CLASSES of the same file: of the classes here, energy alone is no measurement.
		if class, state := c["device_class"], c["state_class"]; state != nil && (class == "energy") != (state == "total_increasing") {
			wrong = append(wrong, fmt.Sprintf("%s: %s has the state class %s", key, class, state))
		}
	}
	for _, w := range wrong {
		t.Error(w)
	}
	return d.Components
}

// TestDiscovery: each point is described as Home Assistant's schemas take it.
func TestDiscovery(t *testing.T) {
	moves := []string{"a/switch", "a/level"}
	for _, tt := range []struct {
		moves, lights, valves []string
		is, level             string
	}{
		{nil, nil, nil, binarySensor, sensor}, {nil, moves, nil, binarySensor, sensor}, {moves, nil, nil, switches, number},
		{moves, moves, nil, light, light}, {moves, nil, moves, valve, valve},
	} {
		c := plan(t, tt.moves, tt.lights, tt.valves)
		if got := c["a.switch"]["platform"]; got != tt.is {
			t.Errorf("%+v: the switch is a %v", tt, got)
		}
		if got := c["a.level"]["platform"]; got != tt.level {
			t.Errorf("%+v: the level is a %v", tt, got)
		}
		for key, class := range map[string]string{"n.humidity": "humidity", "n.soil_moisture": "moisture", "n.battery": "battery", "n.co2": "carbon_dioxide", "n.pm25": "pm25"} {
			if c[key]["device_class"] != class {
				t.Errorf("%s is %v", key, c[key]["device_class"])
			}
		}
		if o := c["n.odd"]; o["unit_of_measurement"] != "[odd]" || o["device_class"] != nil || o["state_class"] != "measurement" {
			t.Errorf("%v", o)
		}
		if e := c[keyOf(fmt.Sprintf("u/u%x", "kW.h"))]; e["state_class"] != "total_increasing" || e["device_class"] != "energy" {
			t.Errorf("%v", e)
		}
		if i := c["a.image"]; i["name"] != "the yard" || c["a.image.take"]["command_topic"] != "agentsite/agentsite-test/a/image/capture" {
			t.Errorf("%v", i)
		}
		if c["a.mode"]["device_class"] != "enum" || c["a.event.on"] == nil || c["a.event.off"] == nil {
			t.Errorf("%v", c)
		}
	}
}

// TestStep: a number has a thousand to ten thousand steps.
func TestStep(t *testing.T) {
	for span, want := range map[float64]float64{0: 1, 1: 0.001, 100: 0.1, 255: 0.1, 90: 0.01, 10000: 10, 1e-6: 0.001} {
		if got := step(span); got != want {
			t.Errorf("%v: %v, want %v", span, got, want)
		}
	}
}
