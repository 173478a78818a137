package ops

import (
	"slices"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/scan"
	"agentsite/node/config"

	"github.com/go-json-experiment/json"
)

func TestPartKeys(t *testing.T) {
	all := allDrivers()
	for name, want := range map[string]string{
		"relay": "pin active_low safe max_on", "ssr": "pin active_low safe max_on", "bme280": "", "pir": "pin",
		"kernel:lm75": "address", "servo": "pin safe max_on",
	} {
		d, err := DriverNamed(name, all)
		var got []string
		for _, k := range PartKeys(d, all) {
			got = append(got, k.Key)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	for _, name := range []string{"", "relai", "switch", "kernel", "kernel:"} {
		if d, err := DriverNamed(name, all); err == nil {
			t.Errorf("%q is %s", name, d.Name)
		}
	}
}

// TestCheckSetting: the keys of each driver's shortest entry are right, one by one, and a mistake is found whatever
// else is missing.
func TestCheckSetting(t *testing.T) {
	all := allDrivers()
	for _, d := range all {
		keys, err := config.EntrySettings(config.Entry{Name: "x", YAML: d.Shortest()})
		if err != nil {
			t.Fatal(d.Name, err)
		}
		for _, k := range keys {
			if err := CheckSetting(strings.Trim(keys[0].Value, `"'`), k, all); err != nil && k.Key != "driver" {
				t.Errorf("%s: %+v: %v", d.Name, k, err)
			}
		}
	}
	for _, tt := range []struct{ driver, key, value string }{
		{"relay", "pin", "17"}, {"relay", "safe", "Off"}, {"relay", "max_on", "5 minutes"},
		{"relay", "pinn", "GPIO4"}, {"relay", "a: b", "1"}, {"bme280", "address", "0x99"}, {"bme280", "max_on", "5m"},
	} {
		if err := CheckSetting(tt.driver, config.Setting{Key: tt.key, Value: tt.value}, all); err == nil || device.AsFault(err).Kind != device.Invalid {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// TestDescribeDrivers: each driver has a page with a schema, and the list of all has neither keys nor schemas.
func TestDescribeDrivers(t *testing.T) {
	all := allDrivers()
	list, err := DescribeDrivers("", all)
	if err != nil || len(list) != len(all) {
		t.Fatal(len(list), err)
	}
	for _, d := range list {
		if d.Keys != nil || d.Schema != nil || d.Entry == "" {
			t.Errorf("%+v", d)
		}
		pages, err := DescribeDrivers(d.Driver, all)
		if err != nil || len(pages) == 0 {
			t.Fatal(d.Driver, err)
		}
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err := json.Unmarshal(pages[0].Schema, &schema); err != nil || !slices.Contains(schema.Required, "driver") {
			t.Errorf("%s: %v %v", d.Driver, schema.Required, err)
		}
		for _, k := range pages[0].Keys {
			if _, ok := schema.Properties[k.Key]; !ok && !strings.ContainsAny(k.Key, ".[") {
				t.Errorf("%s: the schema lacks %s", d.Driver, k.Key)
			}
		}
	}
	relay, err := DescribeDrivers("relay", all)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(relay[0].Asked)), []string{"active_low", "max_on", "pin", "safe"}) {
		t.Errorf("a relay's asked keys: %+v %v", relay, err)
	}
	if _, err := DescribeDrivers("relai", all); err == nil {
		t.Error("a driver that is none is described")
	}
}

func TestAnswer(t *testing.T) {
	s := ScanResult{Found: []scan.Found{{Where: "i2c-1/0x76", What: "BME280", Confidence: scan.Likely, Devices: []scan.Device{{Name: "bme280", YAML: "{ driver: bme280, bus: i2c-1, address: 0x76 }"}}}}}
	got := s.Answer().Found
	want := []config.Setting{{Key: "driver", Value: "bme280"}, {Key: "bus", Value: "i2c-1"}, {Key: "address", Value: "0x76"}}
	if len(got) != 1 || len(got[0].Drafts) != 1 || got[0].Drafts[0].Device != "bme280" || !slices.Equal(got[0].Drafts[0].Set, want) {
		t.Errorf("%+v", got)
	}
}
