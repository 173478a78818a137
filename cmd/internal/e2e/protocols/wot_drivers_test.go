//go:build e2e

package protocols

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	wiring "agentsite/cmd/internal/site"
	"agentsite/device"
	"agentsite/device/driver"
	"agentsite/device/guard"
	"agentsite/device/host"
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
	"agentsite/transport/wot"
)

// described is a device of which there is no more than its description.
type described struct {
	device.Device
	device.Actuator
	description device.Description
}

func (d described) Describe() device.Description { return d.description }

// undescribed are the drivers whose points are those of the part that is there, with the reason. Their
// points have the kinds that other drivers describe.
var undescribed = map[string]string{
	"iio":     "the kernel's driver for the chip says what it measures",
	"kernel:": "as iio or hwmon, after the chip is bound",
	"hwmon":   "the kernel's driver for the chip says what it measures",
	"thermal": "a zone, which this machine may not have",
	"input":   "the keys that the kernel says it has",
	"esphome": "without inputs, the sensors that the node says it has",
}

var entries = regexp.MustCompile("(?m)^\\|[^|]*\\| `(\\{ driver: .*\\})` \\|")

// TestDrivers: the description of every driver's device is valid, as far as its points are known
// without the hardware. The entries are those of the list of drivers, which has them all.
func TestDrivers(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	named := regexp.MustCompile("driver: ([a-z0-9-]+:?)")
	without := make(map[string]bool)
	described, all := 0, entries.FindAllStringSubmatch(string(page), -1)
	for _, entry := range all {
		text := strings.ReplaceAll(entry[1], `\|`, "|")
		parsed, err := config.Parse("x.yaml", []byte("site: { name: x }\ndevices:\n  it: "+text+"\n"), wiring.AllDrivers())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d, err := describe(t, parsed.Devices[0].Config)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if len(d.Points) == 0 {
			if kind := named.FindStringSubmatch(text)[1]; undescribed[kind] == "" {
				t.Errorf("%s is not described: describe it, or say in undescribed why not", text)
			} else {
				without[kind] = true
			}
			continue
		}
		described++
		name := regexp.MustCompile(`\W+`).ReplaceAllString(text, "_") + ".json"
		if err := os.WriteFile(filepath.Join(dir, name), describeDevice(t, d), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if drivers := len(wiring.AllDrivers()); len(all) != drivers || described+len(without) != drivers || len(without) != len(undescribed) {
		t.Errorf("%d drivers, of which the page has %d, %d are described, and %v are not", drivers, len(all), described, without)
	}
	t.Logf("%d drivers are described, and %d are not", described, len(without))
	t.Log(script(t, 2*time.Minute, "descriptions.mjs", dir))
}

// describe returns what a device has: as its configuration says, and of the computer itself as it is.
func describe(t *testing.T, c driver.Config) (device.Description, error) {
	t.Helper()
	if _, ok := c.(*host.Config); ok {
		it, err := driver.Open(t.Context(), c)
		if err != nil {
			return device.Description{}, err
		}
		defer it.Close()
		return it.Describe(), nil
	}
	if d, ok := c.(driver.Describer); ok {
		return d.Describe(), nil
	}
	return device.Description{}, nil
}

// describeDevice returns the Thing Description of a device.
func describeDevice(t *testing.T, d device.Description) []byte {
	t.Helper()
	it := described{description: d}
	var policies []guard.Policy
	for _, p := range d.Points {
		if p.Kind.Output() {
			policies = append(policies, guard.NewPolicy("it", p))
		}
	}
	latch := guard.Latch{File: filepath.Join(t.TempDir(), "armed")}
	g, err := guard.New([]guard.Actuated{{Actuator: it, Policies: policies}}, latch)
	if err != nil {
		t.Fatal(err)
	}
	n := node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Token: "token"})
	if err := n.Replace(node.Site{Name: "x", Devices: []node.Device{{Name: "it", Device: it, Description: d}}, Outputs: g}); err != nil {
		t.Fatal(err)
	}
	h := web.Handler(web.Options{
		Hosts: []string{"x"}, Routes: wot.Routes(&adapter.Site{Node: n, Key: identity.New(), Name: "x", Ending: t.Context()}),
		Callers: n,
	})
	r, w := httptest.NewRequest("GET", "http://x/things/it", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer token")
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%v: %d %s", d, w.Code, w.Body)
	}
	return w.Body.Bytes()
}
