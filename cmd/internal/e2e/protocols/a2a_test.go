//go:build e2e

package protocols

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// TestA2A asks by A2A with the protocol's own clients, and verifies cards by libraries of others.
func TestA2A(t *testing.T) {
	r := harness.Start(t, `site: { name: zorilla }
devices:
  greenhouse: { driver: sim, every: 1s, points: { vent: { min_off: 0s }, heater: { min_off: 0s }, lamp: { min_off: 0s } } }
agents:
  warming: { kind: routine, may: set greenhouse/heater, description: warms, steps: [ { set: { greenhouse/heater: on }, for: 100ms } ] }
  beds: { kind: routine, may: set greenhouse/lamp, steps: [ { ask: "Is the tank full?", options: [yes, no], else: stop }, { set: { greenhouse/lamp: on }, for: 1s } ] }
  flush: { kind: routine, may: set greenhouse/lamp, steps: [ { wait: 10m } ] }
`, harness.Need(t, "the program", harness.Program))
	harness.WaitFor(t, time.Minute, "the routines can be asked", func() bool {
		out, err := r.CLI(t, "call", "ask_agent", "{}")
		return err == nil && strings.Contains(out, "flush")
	})
	t.Log(script(t, 2*time.Minute, "a2a.mjs", r.URL, r.Token, r.DID(t)))
}

// speakA2A asks the things by A2A 1.0, over JSON-RPC.
func speakA2A(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		data := map[string]any{"operation": r.op}
		switch r.op {
		case "read":
			data["points"] = []string{r.point}
		case "history":
			data["point"] = r.point
		case "stop":
		case "move":
			data["output"] = r.point
			if !r.value.IsZero() {
				data["value"] = r.value
			}
			if r.length != 0 {
				data["for"] = r.length
			}
		default:
			return "", fmt.Errorf("nobody asks for %s", r.op)
		}
		meta := map[string]any{}
		if r.key != "" {
			meta["agentsite/idempotency-key"] = r.key
		}
		if r.within != 0 {
			meta["agentsite/expires-in"] = r.within
		}
		text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{"message": map[string]any{
			"messageId": rand.Text(), "role": "ROLE_USER", "parts": []any{map[string]any{"data": data}}, "metadata": meta,
		}}})
		if err != nil {
			return "", err
		}
		q, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/a2a", bytes.NewReader(text))
		if err != nil {
			return "", err
		}
		q.Header.Set("Authorization", "Bearer "+s.token)
		q.Header.Set("A2A-Version", "1.0")
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		var answer struct {
			Result struct {
				Task struct {
					Status struct{ State string }
				}
			}
			Error *struct {
				Message string
				Data    []struct{ Reason, Domain string }
			}
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			return "", err
		}
		if answer.Error == nil {
			if answer.Result.Task.Status.State == "TASK_STATE_AUTH_REQUIRED" {
				return approval, nil
			}
			return "", nil
		}
		for _, d := range answer.Error.Data {
			if d.Domain == "agentsite" {
				return strings.ToLower(d.Reason), errors.New(answer.Error.Message)
			}
		}
		return "", errors.New(answer.Error.Message)
	}
}
