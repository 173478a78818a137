//go:build e2e && linux

package board

import (
	"encoding/json"
	"strings"
	"testing"
)

// found is one finding of agentsite scan.
type found struct {
	Where, What, Confidence, Says string
	YAML                          []string
}

// line returns the configuration's line for a part.
func (f found) line(part string) string {
	for _, line := range f.YAML {
		if strings.HasPrefix(line, part) {
			return line
		}
	}
	return ""
}

// scan finds the board's chips without moving any of them, and the YAML that it
// writes reads them.
func (m *machine) scan(t *testing.T) {
	m.SetPlugged(t, true)
	defer m.SetPlugged(t, false)
	at := m.Bus(t) + "/"
	m.WriteFile(t, "/agentsite.yaml", "site: { name: board }\ndevices:\n  # the board itself\n  host: { driver: host, every: 1s }\n")

	t.Log("a whole scan")
	m.finds(t, m.scanned(t), map[string]string{
		at + "0x76": "certain BME280",
		at + "0x1f": "certain MCP9808",
		at + "0x18": "candidate DS2482",
		at + "0x20": "candidate PCF8574",
		at + "0x23": "candidate BH1750",
		at + "0x3c": "candidate SSD1306",
		at + "0x40": "candidate PCA9685",
		at + "0x48": "candidate TMP102",
		at + "0x49": "candidate ADS1115",
		at + "0x60": "candidate MCP4725",
	})
	for _, chip := range []string{"ds2482", "pcf8574", "bh1750", "ssd1306", "pca9685", "tmp102", "ads1115", "mcp4725"} {
		var outputs any
		if writes := m.ReadChip(t, chip, &outputs); writes > 0 {
			t.Errorf("the scan wrote to %s %d times, and its outputs are now %v", chip, writes, outputs)
		}
	}

	t.Log("a report")
	m.report(t)

	t.Log("a scan that may write to some addresses")
	probed := m.scanned(t, "--write", "--probe", "0x18,0x40,0x48,0x49")
	m.finds(t, probed, map[string]string{
		at + "0x18": "likely DS2482",
		at + "0x40": "likely PCA9685",
		at + "0x48": "likely TMP102",
		at + "0x49": "likely ADS1115",
	})
	m.unmoved(t)

	if exit, out, err := m.Run(t, "/agentsite", "doctor", "--data", "/data", "--json"); exit != 0 {
		t.Errorf("the doctor is not content: %d\n%s%s", exit, out, err)
	}

	// The owner adds parts that light something, and ambiguous ones.
	config := m.ReadFile(t, "/agentsite.yaml")
	config += "  " + probed[at+"0x23"].line("bh1750") + "\n  " + probed[at+"0x3c"].line("ssd1306") + "\n"
	t.Logf("the configuration is now\n%s", config)
	if !strings.Contains(config, "  # the board itself\n") {
		t.Error("what the owner had written is gone")
	}
	m.SetInput(t, "bme280", "temperature", 19.5)
	m.SetInput(t, "tmp102", "temperature", 4.25)
	m.SetInput(t, "mcp9808", "temperature", 11.5)
	m.SetInput(t, "ads1115", "in2", 2.5)
	m.SetInput(t, "bh1750", "illuminance", 88)
	m.SetInput(t, "ds18b20", "temperature", 61.5)
	m.StartSite(t, config)
	defer m.EndSite(t)
	m.expect(t, near("bme280/temperature", 19.5, 0.02), near("tmp102/temperature", 4.25, 0.001), near("mcp9808/temperature", 11.5, 0.001),
		near("ads1115/voltage2", 2.5, 0.001), near("bh1750/illuminance", 88, 1), near("ds2482/temperature-1", 61.5, 0.001), good("host/uptime"))
	m.show(t, "ssd1306/text", "found")
}

// report prints what the board has, and drives two lines that are not bridged.
func (m *machine) report(t *testing.T) {
	t.Helper()
	exit, out, err := m.Run(t, "/agentsite", "board", "report", "--data", "/data")
	for _, want := range []string{m.Bus(t) + "/0x76: BME280 (certain)", "aarch64", "28 GPIO lines of gpio-sim"} {
		if exit != 0 || !strings.Contains(out, want) {
			t.Errorf("the report, which ended with %d, lacks %q\n%s%s", exit, want, out, err)
		}
	}
	exit, out, err = m.Run(t, "/agentsite", "board", "report", "--data", "/data", "--loop", "GPIO5,GPIO6")
	if exit != 0 || !strings.Contains(out, "GPIO5 to GPIO6: 10 of 20 levels arrived, 0 edges") {
		t.Errorf("the loop test ended with %d\n%s%s", exit, out, err)
	}
}

// scanned returns the results of a scan, by their place.
func (m *machine) scanned(t testing.TB, args ...string) map[string]found {
	t.Helper()
	exit, stdout, stderr := m.Run(t, append([]string{"/agentsite", "scan", "--json", "--data", "/data"}, args...)...)
	var out struct{ Found []found }
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || exit != 0 {
		t.Fatalf("scan ended with %d, %v\n%s%s", exit, err, stdout, stderr)
	}
	all := make(map[string]found)
	for _, f := range out.Found {
		all[f.Where] = f
	}
	return all
}

// finds expects places to have a part, with a confidence before its name.
func (m *machine) finds(t testing.TB, all map[string]found, want map[string]string) {
	t.Helper()
	for where, what := range want {
		f := all[where]
		if confidence, part, _ := strings.Cut(what, " "); f.Confidence != confidence || !strings.Contains(f.What, part) {
			t.Errorf("at %s should be %s, and is %q %q", where, what, f.Confidence, f.What)
		}
	}
}
