package site

import (
	"strings"
	"testing"

	"agentsite/node/config"
)

// TestOneMover: what an output at the end of a network moves is moved by one output only, whichever device names it.
func TestOneMover(t *testing.T) {
	for _, tt := range []struct{ device, output string }{
		{"driver: esphome, address: kitchen.local, plaintext: on", "entity: switch/heater"},
		{"driver: modbus, address: 192.168.1.20", "coil: 1"},
		{"driver: modbus, port: /dev/ttyUSB0, unit_id: 3", "coil: 1"},
		{"driver: mqtt, broker: mqtt://192.168.1.5, kind: zigbee2mqtt, name: plug", "path: state"},
		{"driver: http, url: 'http://192.168.1.20'", "from: /relay/0, path: on, set: '/relay/0?turn={value}', method: GET"},
		{"driver: thing, url: 'http://192.168.1.20/lamp'", "property: on"},
		{"driver: mcp, url: 'http://192.168.1.20/mcp'", `tool: get, path: on, set_tool: set, set_arguments: '{"on":{value}}'`},
	} {
		for what, form := range map[string]string{
			"one":         "  a: { DEVICE, outputs: { one: { OUTPUT, safe: off } } }\n",
			"two devices": "  a: { DEVICE, outputs: { one: { OUTPUT, safe: off } } }\n  b: { DEVICE, outputs: { two: { OUTPUT, safe: on } } }\n",
			"two points":  "  a: { DEVICE, outputs: { one: { OUTPUT, safe: off }, two: { OUTPUT, safe: on } } }\n",
		} {
			text := "site: { name: a }\ndevices:\n" + strings.NewReplacer("DEVICE", tt.device, "OUTPUT", tt.output).Replace(form)
			if _, err := config.Parse("agentsite.yaml", []byte(text), AllDrivers()); (err == nil) != (what == "one") {
				t.Errorf("%s, %s: %v", tt.device, what, err)
			}
		}
	}
}
