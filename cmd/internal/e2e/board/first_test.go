//go:build e2e && linux

package board

import (
	"strings"
	"testing"
	"time"
)

// firstBoot boots an unconfigured board with a BME280 among its chips. The BME280 is read, and
// nothing that could be an output is configured or moved.
func (m *machine) firstBoot(t *testing.T) {
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	m.SetInput(t, "bme280", "temperature", 17.25)
	const file = "/first/agentsite.yaml"
	prepare := func() string {
		t.Helper()
		exit, stdout, stderr := m.Run(t, "/agentsite", "prepare", "--config", file, "--data", "/data", "--group", "0")
		if exit != 0 {
			t.Fatalf("prepare ended with %d\n%s%s", exit, stdout, stderr)
		}
		return stdout
	}
	begun := time.Now()
	did := prepare()
	t.Logf("%.1f s\n%s", time.Since(begun).Seconds(), did)
	if line := "bme280: { driver: bme280, bus: " + m.Bus(t) + ", address: 0x76 }\n"; !strings.Contains(did, file+"\n") || !strings.Contains(did, line) {
		t.Errorf("it did not say that it made %s and added %s", file, line)
	}
	config := m.ReadFile(t, file)
	t.Logf("the configuration is\n%s", config)
	for _, output := range []string{"safe", "pca9685", "mcp4725", "pcf8574", "gpio"} {
		if strings.Contains(config, output) {
			t.Errorf("%s is in it", output)
		}
	}
	if did := prepare(); strings.Contains(did, "bme280") || m.ReadFile(t, file) != config {
		t.Errorf("the second time it did\n%s", did)
	}
	m.unmoved(t)
	m.StartSite(t, config)
	defer m.EndSite(t)
	m.expect(t, near("bme280/temperature", 17.25, 0.02))
}
