package modbus

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

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

// TestNoAlarm: after an answer nothing wakes the processor.
func TestNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go pumpFake().serve(there)
		conn := &lantest.Alarms{Conn: here}
		l := &tcpLine{conn: conn}
		if _, err := l.exchange(time.Now().Add(time.Second), 1, request{function: readCoils, address: 3, count: 1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := conn.Passed.Load(); n != 0 {
			t.Errorf("%d deadlines passed", n)
		}
		l.abort()
	})
}
