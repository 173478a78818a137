//go:build e2e

package protocols

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestWoT uses every kind of point, and an agent, by node-wot.
func TestWoT(t *testing.T) {
	pressed := filepath.Join(t.TempDir(), "pressed")
	r := harness.Start(t, fmt.Sprintf(`site: { name: shed }
devices:
  greenhouse: { driver: sim, speed: 600, every: 200ms, points: { heater: { min_off: 0s }, vent: { min_off: 0s } } }
  alarm: { driver: sim, model: stop-button, pressed_file: %s }
agents:
  beds:
    kind: routine
    may: show greenhouse
    steps: [ { ask: "Is the tank full?", options: [yes, no], else: stop }, { show: { greenhouse/message: "watered" } } ]
`, pressed), harness.Need(t, "the program", harness.Program))
	t.Log(script(t, 2*time.Minute, "wot.mjs", r.URL, r.Token, pressed))
}

// speakWoT asks by the HTTP binding of Thing Descriptions.
func speakWoT(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		device, point, _ := strings.Cut(r.point, "/")
		property := "/things/" + device + "/properties/" + point
		switch {
		case r.op == "read":
			return s.askHTTP(ctx, "GET", property, nil, r)
		case r.op == "history":
			return s.askHTTP(ctx, "POST", "/things/site:shed/actions/history", fmt.Appendf(nil, `{"point":%q}`, r.point), r)
		case r.op == "stop":
			return s.askHTTP(ctx, "POST", "/things/site:shed/actions/stop", nil, r)
		case r.op == "move" && r.value.IsZero():
			return s.askHTTP(ctx, "POST", "/things/"+device+"/actions/release."+point, nil, r)
		case r.op == "move":
			if r.length != 0 {
				property += fmt.Sprintf("?for=%f", r.length)
			}
			value, err := json.Marshal(r.value)
			if err != nil {
				return "", err
			}
			return s.askHTTP(ctx, "PUT", property, value, r)
		}
		return "", fmt.Errorf("nobody asks for %s", r.op)
	}
}
