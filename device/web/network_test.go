package web

import (
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/lan/lantest"
)

// peer returns the fake for the suite of devices at the end of a network.
func (f *fake) peer() lantest.Peer {
	return lantest.Peer{
		Address: strings.TrimPrefix(f.URL, "http://"),
		Level:   f.has,
		Set: func(point string, v device.Value) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.put(point, v)
		},
		Ignore: func(on bool) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.deaf = on
		},
	}
}

func TestDocumentNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	lantest.Network{
		Peer: func(t *testing.T) lantest.Peer { return newFake(t).peer() },
		Open: func(t *testing.T, address string) (device.Device, error) {
			f := &fake{}
			c := f.config()
			c.URL = "http://" + address
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}

func TestMCPNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	lantest.Network{
		Peer:   func(t *testing.T) lantest.Peer { return newMCPFake(t, false, false).peer() },
		Except: map[string]string{"network_close": "the SDK's server, which is the fake, keeps a goroutine of each cut request"},
		Open: func(t *testing.T, address string) (device.Device, error) {
			f := &mcpFake{}
			c := f.config()
			c.URL = "http://" + address
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}

func TestThingNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute")
	}
	lantest.Network{
		Peer: func(t *testing.T) lantest.Peer { return newFake(t).peer() },
		Open: func(t *testing.T, address string) (device.Device, error) {
			c := (&fake{}).thing()
			c.URL = "http://" + address + "/td"
			return driver.Open(t.Context(), c)
		},
	}.Run(t)
}
