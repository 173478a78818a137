package mqtt

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan/lantest"
)

// TestNetwork holds the driver to the contract of devices at the end of a network.
func TestNetwork(t *testing.T) {
	lantest.Network{
		Peer: func(t *testing.T) lantest.Peer {
			p := newPlug(t)
			return lantest.Peer{
				Address: p.ln.Addr().String(),
				Level:   p.has,
				Set: func(_ string, v device.Value) {
					p.do(func() { p.on = v.Bool() })
					p.publish("zigbee2mqtt/plug", p.state(), true)
				},
				Ignore: func(on bool) {
					p.do(func() {
						p.fakeBroker.device = p.command
						if on {
							p.fakeBroker.device = nil
						}
					})
				},
				Flood: func() {
					go func() {
						for t.Context().Err() == nil {
							p.publish("zigbee2mqtt/plug", `{"power":13}`, false)
							if p.clientCount() == 0 {
								time.Sleep(time.Millisecond)
							}
						}
					}()
				},
			}
		},
		Open: func(t *testing.T, address string) (device.Device, error) {
			c := (&fakeBroker{ln: nowhere{}}).config()
			c.Broker = "mqtt://" + address
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}

func (b *fakeBroker) clientCount() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.clients) }

// TestNoAlarm: after a ping that was written nothing wakes the processor but the next one.
func TestNoAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		conn := &lantest.Alarms{Conn: here}
		l := &link{conn: conn, longest: maxPayload, timing: usual, writing: device.NewMutex(), gone: make(chan struct{})}
		go l.pings()
		time.Sleep(time.Minute)
		if n := conn.Passed.Load(); n != 0 {
			t.Errorf("%d deadlines of writes passed in a minute", n)
		}
		l.drop()
		there.Close()
	})
}
