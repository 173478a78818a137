package ops

import (
	"bytes"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/node/config"
)

const powerYAML = `site: { name: shed }
devices:
  ups: { driver: max17043 }
power: { off_when: ups/charge < 10 % }
`

// TestPowerOff: the machine goes off only where its configuration says so, and not soon after its start.
func TestPowerOff(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("as on Linux")
	}
	for name, tt := range map[string]struct {
		config, uptime string
		off            bool
	}{
		"a section":          {powerYAML, "4000.25 3000.00\n", true},
		"none":               {"site: { name: shed }\n", "4000.25 3000.00\n", false},
		"a mistake":          {powerYAML + "nonsense: on\n", "4000.25 3000.00\n", false},
		"after the start":    {powerYAML, "299.99 3000.00\n", false},
		"of unknown uptime":  {powerYAML, "NaN\n", false},
		"of no known uptime": {powerYAML, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := flashed(t, map[string]string{"etc/agentsite.yaml": tt.config, "proc/uptime": tt.uptime})
			socket := filepath.Join(t.TempDir(), "s")
			ln, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			served := make(chan error, 1)
			go func() {
				conn, err := ln.Accept()
				if err == nil {
					err = ServePowerOff(o, conn)
					conn.Close()
				}
				served <- err
			}()
			err = PowerOff(t.Context(), socket)
			if (err == nil) != tt.off || err != nil && device.AsFault(err).Kind != device.Denied {
				t.Error(err)
			}
			if err := <-served; (err == nil) != tt.off {
				t.Error("of the service:", err)
			}
		})
	}
	if err := PowerOff(t.Context(), filepath.Join(t.TempDir(), "none")); device.AsFault(err).Kind != device.Unavailable {
		t.Error(err)
	}
	o := flashed(t, map[string]string{"etc/agentsite.yaml": powerYAML, "proc/uptime": "4000.25 3000.00\n"})
	cfg, _, _, err := config.LoadFile(o.Config, o.Drivers)
	if found := powerFindings(cfg, o.Root); err != nil || len(found) != 1 || found[0].Severity != driver.Problem {
		t.Error(found, err)
	}
	var out bytes.Buffer
	if err := ServePowerOff(o, &out); err != nil || out.String() != "{}" {
		t.Error(out.String(), err)
	}
}
