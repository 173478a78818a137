package esphome

import (
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/esphome/esphometest"
	"agentsite/device/lan/lantest"
)

// TestNetwork holds the driver to the contract of devices at the end of a network.
func TestNetwork(t *testing.T) {
	lantest.Network{
		Peer: func(t *testing.T) lantest.Peer {
			n := kitchen()
			n.Key = testKey
			return lantest.Peer{
				Address: n.Listen(t),
				Level:   func(string) device.Value { return device.Bool(n.Get("switch/heater").On) },
				Set: func(_ string, v device.Value) {
					n.Set("switch/heater", func(e *esphometest.Entity) { e.On = v.Bool() })
				},
				Ignore: func(on bool) { n.Set("switch/heater", func(e *esphometest.Entity) { e.Deaf = on }) },
				Flood: func() {
					ctx := t.Context()
					go func() {
						for ctx.Err() == nil {
							n.Flood("sensor/temperature", 100)
						}
					}()
				},
			}
		},
		Open: func(t *testing.T, address string) (device.Device, error) {
			c := kitchenConfig()
			c.Address, c.KeyFile = address, keyFile(t, testKey)
			heater := c.Outputs["heater"]
			c.Outputs = map[string]output{"heater": heater}
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}
