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
	"agentsite/node"
	"agentsite/node/config"
	"agentsite/node/identity"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
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

var entries = regexp.MustCompile("(?m)^\\|[^|]*\\| `(\\{ driver: .*\\})` \\|")

// TestDrivers: the description of every driver's device is valid, as far as its points are known
// without the hardware. The entries are those of the list of drivers, which has them all.
func TestDrivers(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	described, all := 0, entries.FindAllStringSubmatch(string(page), -1)
	for _, entry := range all {
		text := strings.ReplaceAll(entry[1], `\|`, "|")
		parsed, err := config.Parse("x.yaml", []byte("site: { name: x }\ndevices:\n  it: "+text+"\n"), wiring.AllDrivers())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d, ok := parsed.Devices[0].Config.(driver.Describer); ok && len(d.Describe().Points) > 0 {
			described++
			name := regexp.MustCompile(`\W+`).ReplaceAllString(text, "_") + ".json"
			if err := os.WriteFile(filepath.Join(dir, name), describeDevice(t, d.Describe()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if drivers := len(wiring.AllDrivers()); len(all) != drivers || described < drivers*2/3 {
		t.Errorf("%d drivers, of which the page has %d, and %d are described", drivers, len(all), described)
	}
	t.Log(script(t, 2*time.Minute, "descriptions.mjs", dir))
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
	n := node.New(node.NewHub(nil, nil, agents.PointURI), "token", nil)
	if err := n.SetSite(node.Site{Name: "x", Devices: []node.Device{{Name: "it", Device: it, Description: d}}, Outputs: g}); err != nil {
		t.Fatal(err)
	}
	h := web.Handler(web.Options{
		Hosts: []string{"x"}, Routes: wot.Routes(&adapter.Site{Node: n, Key: identity.New(), Name: "x"}),
		Admit: func(e rpc.Evidence) (any, string, error) { return n.Admit(node.Evidence(e)) },
	})
	r, w := httptest.NewRequest("GET", "http://x/things/it", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer token")
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%v: %d %s", d, w.Code, w.Body)
	}
	return w.Body.Bytes()
}
