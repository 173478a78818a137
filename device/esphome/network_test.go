package esphome

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

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

// TestNoAlarm: after a message that was written nothing wakes the processor.
func TestNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		conn := &lantest.Alarms{Conn: here}
		f, err := newFrames(conn, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.send(time.Now().Add(sendTimeout), message{id: pingRequest}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := conn.Passed.Load(); n != 0 {
			t.Errorf("%d deadlines passed", n)
		}
		here.Close()
		there.Close()
	})
}
