package esphome

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/esphome/esphometest"
	"agentsite/device/lan"
	"agentsite/device/ucum"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *config)
		want   string // the key in the fault; "" for none
	}{
		"whole":          {func(c *config) {}, ""},
		"no points":      {func(c *config) { c.Inputs, c.Outputs = nil, nil }, ""},
		"no address":     {func(c *config) { c.Address = "" }, "address"},
		"a URL":          {func(c *config) { c.Address = "http://kitchen.local" }, "address"},
		"no port":        {func(c *config) { c.Address = "kitchen.local:99999" }, "address"},
		"no key":         {func(c *config) { c.KeyFile = "" }, "key_file"},
		"key and none":   {func(c *config) { c.Plaintext = true }, "plaintext"},
		"mac":            {func(c *config) { c.MAC = "kitchen" }, "mac"},
		"fresh":          {func(c *config) { c.Fresh = 0 }, "fresh"},
		"kind":           {func(c *config) { setInput(c, "climate/x") }, "inputs.it.entity"},
		"no kind":        {func(c *config) { setInput(c, "temperature") }, "inputs.it.entity"},
		"object ID":      {func(c *config) { setInput(c, "sensor/Air Temperature") }, "inputs.it.entity"},
		"number":         {func(c *config) { setInput(c, "binary_sensor/x") }, "inputs.it.entity"},
		"text":           {func(c *config) { setInput(c, "text_sensor/x") }, "inputs.it.entity"},
		"not an output":  {func(c *config) { setOutput(c, "sensor/x", driver.Quantity{}) }, "outputs.it.entity"},
		"number output":  {func(c *config) { setOutput(c, "number/x", driver.Quantity{}) }, "outputs.it.entity"},
		"switch levels":  {func(c *config) { setOutput(c, "switch/x", percent(0, 100)) }, "outputs.it.entity"},
		"percent":        {func(c *config) { setOutput(c, "light/x", percent(0, 255)) }, "outputs.it.range"},
		"two outputs":    {func(c *config) { setOutput(c, "switch/heater", driver.Quantity{}) }, ".entity"},
		"unit of nobody": {func(c *config) { setUnit(c) }, "node_unit"},
	} {
		t.Run(name, func(t *testing.T) {
			conf := kitchenConfig()
			conf.KeyFile = "kitchen.key"
			c.change(conf)
			err := conf.Validate()
			key := ""
			if err != nil {
				key, _, _ = strings.Cut(err.Error(), ":")
			}
			if c.want == "" != (err == nil) || !strings.HasSuffix(key, c.want) {
				t.Errorf("%v, want one of %q", err, c.want)
			}
		})
	}
}

func setInput(c *config, entity string) {
	c.Inputs["it"] = input{entityKey{Entity: entity}, driver.InputPoint{Quantity: percent(0, 100)}}
}

func setOutput(c *config, entity string, q driver.Quantity) {
	o := output{entityKey{Entity: entity}, driver.OutputPoint{Quantity: q, Safe: device.Bool(false)}}
	if q.Unit != "" {
		o.Safe = device.Number(0)
	}
	c.Outputs["it"] = o
}

func setUnit(c *config) {
	in := c.Inputs["temperature"]
	in.NodeUnit = "°C"
	c.Inputs["temperature"] = in
}

// TestKeys has files that are no keys. No fault shows what is in them.
func TestKeys(t *testing.T) {
	for _, text := range []string{"", "kitchen secret", "c2hvcnQ=", testKey + "AAAA"} {
		c := kitchenConfig()
		c.KeyFile = keyFile(t, text)
		_, err := driver.Open(t.Context(), c)
		if kindOfFault(err) == "" || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	c := kitchenConfig()
	c.KeyFile = "/nowhere/kitchen.key"
	if _, err := driver.Open(t.Context(), c); kindOfFault(err) != device.Offline {
		t.Errorf("%v", err)
	}
}

// TestUnwritten opens a node without points: they are its sensors.
func TestUnwritten(t *testing.T) {
	bubble(t, func(t *testing.T, n *esphometest.Node, c *config) {
		c.Inputs, c.Outputs = nil, nil
		if len(c.Describe().Points) != 0 {
			t.Error("it describes points that it cannot know")
		}
		dev := opened(t, c)
		if got := sampled(t, dev); len(got) != 2 || got["temperature"].Value != device.Number(21.3) || got["door"].Value != device.Bool(true) {
			t.Errorf("%+v", got)
		}
		if p, _ := dev.Describe().Point("temperature"); p.Unit != "Cel" || p.Range != ranges["Cel"] {
			t.Errorf("%+v", p)
		}
	})
}

// TestNobody opens a node that is not there.
func TestNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := kitchenConfig()
	c.Address, c.Plaintext = l.Addr().String(), true
	if _, err := driver.Open(t.Context(), c); kindOfFault(err) != device.Offline || !strings.Contains(err.Error(), c.Address) {
		t.Errorf("%v", err)
	}
}

// TestSeen shows nodes as scan does.
func TestSeen(t *testing.T) {
	n := esphometest.New(
		&esphometest.Entity{Kind: "sensor", Name: "Luftfeuchte in der Küche am Fenster", Unit: "%", Number: 50},
		&esphometest.Entity{Kind: "sensor", Name: "Luftfeuchte in der Küche am Fenster", Unit: "%", Number: 50, Device: 1},
		&esphometest.Entity{Kind: "sensor", Name: "Odd", Unit: "furlongs a fortnight"},
		&esphometest.Entity{Kind: "binary_sensor", Name: "Door"},
		&esphometest.Entity{Kind: "switch", Name: "Heater"},
		&esphometest.Entity{Kind: "button", Name: "Restart"},
	)
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := map[string]string{"mac": "a4cf12010203"}
	f := seen(ctx, lan.Instance{Host: "Kitchen.local.", Port: 6053, Text: text}, n.Dial(&serving))
	for _, want := range []string{`address: "kitchen.local"`, "plaintext: on", `mac: "A4:CF:12:01:02:03"`, "door: { entity: binary_sensor/door, state: on }",
		`unit: "%", range: 0..100`} {
		if f.Name != "kitchen" || !strings.Contains(f.YAML, want) {
			t.Errorf("%s: %s; want %s", f.Name, f.YAML, want)
		}
	}
	if strings.Contains(f.YAML, "heater") || strings.Contains(f.YAML, "odd") || !strings.Contains(f.Says, "switch/heater") {
		t.Errorf("%+v", f)
	}
	text["api_encryption"] = "Noise_NNpsk0_25519_ChaChaPoly_SHA256"
	f = seen(ctx, lan.Instance{Host: "kitchen.local", Port: 7000, Text: text}, nil)
	if !strings.Contains(f.YAML, `"kitchen.local:7000", key_file: kitchen.key`) || f.Says == "" {
		t.Errorf("%+v", f)
	}
	text["mac"] = "another"
	delete(text, "api_encryption")
	for _, host := range []string{"", "a b", "x\u202e.local", "-", strings.Repeat("a", 300)} {
		if f := seen(ctx, lan.Instance{Host: host, Text: text}, n.Dial(&serving)); strings.ContainsAny(f.Where+f.Name+f.YAML, " \u202e") && f.YAML == "" {
			t.Errorf("%q: %+v", host, f)
		}
	}
}

// written are units as esphome/const.py has them, with their UCUM codes.
var written = map[string]string{
	"": "", "°C": "Cel", "°F": "[degF]", "K": "K", "%": "%", "Pa": "Pa", "hPa": "hPa", "kPa": "kPa",
	"mbar": "mbar", "bar": "bar", "psi": "[psi]", "lx": "lx", "lm": "lm", "V": "V", "mV": "mV", "kV": "kV",
	"A": "A", "mA": "mA", "µA": "uA", "W": "W", "mW": "mW", "kW": "kW", "VA": "V.A", "kVA": "kV.A",
	"Wh": "W.h", "kWh": "kW.h", "MWh": "MW.h", "Hz": "Hz", "kHz": "kHz", "MHz": "MHz", "dBm": "dB[mW]",
	"dB": "dB", "ppm": "[ppm]", "ppb": "[ppb]", "µg/m³": "ug/m3", "mg/m³": "mg/m3", "g/m³": "g/m3", "m³": "m3",
	"m³/h": "m3/h", "L": "L", "mL": "mL", "L/min": "L/min", "L/h": "L/h", "g": "g", "kg": "kg", "mm": "mm",
	"cm": "cm", "m": "m", "km": "km", "m/s": "m/s", "km/h": "km/h", "mm/h": "mm/h", "m/s²": "m/s2", "°": "deg",
	"°/s": "deg/s", "s": "s", "ms": "ms", "µs": "us", "min": "min", "h": "h", "d": "d", "W/m²": "W/m2",
	"µS/cm": "uS/cm", "mS/cm": "mS/cm", "pH": "[pH]", "µT": "uT", "Ω": "Ohm", "kΩ": "kOhm", "J": "J",
	"kJ": "kJ", "B": "By", "kB": "kBy", "RPM": "/min", "pulses/min": "/min", "steps": "{steps}",
	"pulses": "{pulses}",
}

// TestUnits: what is offered to the owner is accepted from the owner.
func TestUnits(t *testing.T) {
	for unit, code := range written {
		if err := ucum.Check(code); err != nil {
			t.Errorf("%s: %v", unit, err)
		}
		if got, ok := unitOf(strings.ReplaceAll(unit, "µ", "μ")); !ok || got != code {
			t.Errorf("%s is %s, want %s", unit, got, code)
		}
		q := driver.Quantity{Unit: code, Range: rangeOf(code)}
		if err := q.Validate("it"); err != nil {
			t.Error(err)
		}
	}
	if code, _ := unitOf("G"); code == "G" { // a gauss in UCUM
		t.Error("an acceleration is taken for a magnetic field")
	}
	for _, unit := range []string{"furlongs a fortnight", "€/kWh", "\xff"} {
		if code, ok := unitOf(unit); ok {
			t.Errorf("%s is taken for %s", unit, code)
		}
	}
}
