//go:build e2e

package protocols

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
)

// toolOf returns the tool that r is, with its arguments.
func toolOf(r request) (tool string, args map[string]any, err error) {
	args = map[string]any{}
	switch r.op {
	case "read":
		return "read_points", map[string]any{"points": []string{r.point}}, nil
	case "history":
		return "read_history", map[string]any{"point": r.point}, nil
	case "stop":
		return "emergency_stop", args, nil
	case "move":
		args["output"] = r.point
		if r.value.IsZero() {
			return "release_output", args, nil
		}
		if r.length != 0 {
			args["for_seconds"] = r.length
		}
		if r.value.Type() == device.TypeBool {
			args["on"] = r.value
			return "switch_output", args, nil
		}
		args["value"] = r.value
		return "set_level", args, nil
	}
	return "", nil, fmt.Errorf("nobody asks for %s", r.op)
}

// termsOf are the terms of r in JSON.
func termsOf(r request) map[string]any {
	terms := map[string]any{}
	if r.key != "" {
		terms["agentsite/idempotency-key"] = r.key
	}
	if r.within != 0 {
		terms["agentsite/expires-in"] = r.within
	}
	return terms
}

// post sends v in JSON, and decodes the answer.
func (s *site) post(ctx context.Context, path string, v, into any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, "POST", s.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		return errors.New(res.Status)
	}
	return json.NewDecoder(res.Body).Decode(into)
}

// documentOf are the documents for the tools of toolOf, by their hashes.
var documentOf = map[string]string{
	"read_points":    "5bbacf2aa86a763a7afeb4a8ba21d0136008f1b4",
	"read_history":   "28e8a771921526bbe3a5a55579c43bed1efb63d9",
	"switch_output":  "31d3ae71234ab92ef9e9290a1833c2df6eb6e52f",
	"set_level":      "f608c50edcfc749bf66ef5dc8548208107a0f5ef",
	"release_output": "ab996123e352051314bb21c5376ba69cb8cf9d2f",
	"emergency_stop": "5eafc75ba513aeb9e5fe6bf6d8aeb3df3b5dda13",
}

// speakAgora asks by documents of Agora.
func speakAgora(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		tool, args, err := toolOf(r)
		if err != nil {
			return "", err
		}
		envelope := termsOf(r)
		envelope["protocolHash"], envelope["body"] = documentOf[tool], args
		var got struct {
			Status, Error string
			Body          struct{ Fault, Error string }
			Approval      string `json:"agentsite/approval"`
		}
		switch err := s.post(ctx, "/agora", envelope, &got); {
		case err != nil:
			return "", err
		case got.Approval != "":
			return approval, nil
		case got.Status == "failure" && got.Body.Fault == "":
			return "", errors.New(got.Error)
		}
		return got.Body.Fault, errors.New(got.Body.Error)
	}
}

// TestAgora asks as a client does that was written by the specification, and one written like
// the Python library.
func TestAgora(t *testing.T) {
	r := harness.Start(t, `site: { name: shed }
protocols: [agora]
devices:
  lamp: { driver: sim, model: relay, min_off: 0s }
  den: { driver: sim, model: climate }
agents:
  light: { kind: routine, may: set lamp, steps: [{ ask: "Now?", options: [yes, no], else: stop }, { set: { lamp/relay: on }, for: 1m }] }
`, harness.Need(t, "the program", harness.Program))
	t.Log(script(t, time.Minute, "agora.mjs", r.URL, r.Token))
}
