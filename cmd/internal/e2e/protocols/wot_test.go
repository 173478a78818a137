//go:build e2e

package protocols

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"

	"github.com/coder/websocket"
)

const wotConfig = `site: { name: shed }
devices:
  greenhouse: { driver: sim, speed: 600, every: 200ms, points: { heater: { min_off: 0s }, vent: { min_off: 0s } } }
  alarm: { driver: sim, model: stop-button, pressed_file: %s }
agents:
  beds:
    kind: routine
    may: show greenhouse
    steps: [ { ask: "Is the tank full?", options: [yes, no], else: stop }, { show: { greenhouse/message: "watered" } } ]
`

// TestWoT uses every kind of point, and an agent, by node-wot.
func TestWoT(t *testing.T) {
	pressed := filepath.Join(t.TempDir(), "pressed")
	r := harness.Start(t, fmt.Sprintf(wotConfig, pressed), harness.Need(t, "the program", harness.Program))
	t.Log(script(t, 2*time.Minute, "wot.mjs", r.URL, r.Token, pressed))
}

// TestLMOS uses them by the WebSocket sub-protocol of LMOS.
func TestLMOS(t *testing.T) {
	r := harness.Start(t, fmt.Sprintf(wotConfig, filepath.Join(t.TempDir(), "pressed")), harness.Need(t, "the program", harness.Program))
	t.Log(script(t, 2*time.Minute, "lmos.mjs", r.URL, r.Token))
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

// speakLMOS asks by the WebSocket sub-protocol of LMOS.
func speakLMOS(t *testing.T, s *site) speaker {
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/lmosprotocol", &websocket.DialOptions{
		Subprotocols: []string{"lmosprotocol"}, HTTPHeader: http.Header{"Authorization": {"Bearer " + s.token}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	return func(ctx context.Context, r request) (string, error) {
		device, point, _ := strings.Cut(r.point, "/")
		m := map[string]any{"thingId": s.URL + "/things/" + device, "messageType": "readProperty", "name": point}
		switch {
		case r.op == "history":
			m["thingId"], m["messageType"], m["action"], m["input"] = s.URL+"/things/site:shed", "invokeAction", "history", map[string]string{"point": r.point}
		case r.op == "stop":
			m["thingId"], m["messageType"], m["action"] = s.URL+"/things/site:shed", "invokeAction", "stop"
		case r.op == "move" && r.value.IsZero():
			m["messageType"], m["action"] = "invokeAction", "release."+point
		case r.op == "move":
			m["messageType"], m["data"] = "writeProperty", r.value
		}
		if r.length != 0 {
			m["for"] = r.length
		}
		if r.key != "" {
			m["messageId"] = r.key
		}
		if r.within != 0 {
			m["agentsite/expires-in"] = r.within
		}
		text, err := json.Marshal(m)
		if err != nil {
			return "", err
		}
		if err := conn.Write(ctx, websocket.MessageText, text); err != nil {
			return "", err
		}
		if _, text, err = conn.Read(ctx); err != nil {
			return "", err
		}
		var answer struct {
			Type     string `json:"messageType"`
			Kind     string `json:"type"`
			Detail   string `json:"detail"`
			Approval string `json:"agentsite/approval"`
		}
		switch err := json.Unmarshal(text, &answer); {
		case err != nil || answer.Type != "error":
			return "", err
		case answer.Approval != "":
			return approval, nil
		}
		return strings.TrimPrefix(answer.Kind, "urn:agentsite:fault:"), errors.New(answer.Detail)
	}
}
