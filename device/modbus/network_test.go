package modbus

import (
	"testing"

	"agentsite/device"
	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/device/lan/lantest"
)

// TestNetwork holds the driver to the contract of devices at the end of a network.
func TestNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	lantest.Network{
		Peer: func(t *testing.T) lantest.Peer {
			f := pumpFake()
			return lantest.Peer{
				Address: f.serveTCP(t),
				Level: func(point string) device.Value {
					f.mu.Lock()
					defer f.mu.Unlock()
					if point == "pump" {
						return device.Bool(f.coils[3])
					}
					return device.Number(float64(f.holdings[100]) / 10)
				},
				Set: func(point string, v device.Value) {
					f.set(func() {
						if point == "pump" {
							f.coils[3] = v.Bool()
						} else {
							f.holdings[100] = uint16(v.Number() * 10)
						}
					})
				},
				Ignore: func(on bool) { f.set(func() { f.deaf = on }) },
			}
		},
		Open: func(t *testing.T, address string) (device.Device, error) {
			c := pump(configOf(board.New()))
			c.Address = address
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}
