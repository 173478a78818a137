//go:build e2e

package protocols

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// speakAITP asks in threads of AITP, each operation in one of its own.
func speakAITP(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		tool, args, err := toolOf(r)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(map[string]any{"operation": tool, "arguments": args})
		if err != nil {
			return "", err
		}
		message := map[string]any{"role": "user", "content": []string{string(text)}, "metadata": termsOf(r)}
		var got struct {
			Messages []struct {
				Metadata struct {
					Fault    string `json:"agentsite/fault"`
					Approval bool   `json:"agentsite/approval"`
				}
			}
		}
		if err := s.post(ctx, "/aitp/v1/threads", map[string]any{"messages": []any{message}}, &got); err != nil {
			return "", err
		}
		last := got.Messages[len(got.Messages)-1].Metadata
		if last.Approval {
			return approval, nil
		}
		return last.Fault, nil
	}
}

// TestAITP holds a thread. Its payloads are valid by the published schemas, which
// testdata/aitp-0*.json are (nearai/aitp, MIT License, Copyright (c) 2025 NEAR AI).
func TestAITP(t *testing.T) {
	r := harness.Start(t, `site: { name: shed }
protocols: [aitp]
devices:
  lamp: { driver: sim, model: relay, min_off: 0s }
  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }
  den: { driver: sim, model: climate }
agents:
  light: { kind: routine, may: set lamp, steps: [{ ask: "Now?", options: [yes, no], else: stop }, { ask: "Who is there?" }, { set: { lamp/relay: on }, for: 1m }] }
`, harness.Need(t, "the program", harness.Program))
	token, _ := r.AddToken(t, "caller", "read *, set *, ask light")
	var schemas []string
	for _, file := range []string{"testdata/aitp-02.json", "testdata/aitp-03.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		schemas = append(schemas, string(text))
	}
	t.Log(script(t, time.Minute, "aitp.mjs", append([]string{r.URL, token}, schemas...)...))
}
