//go:build e2e

package protocols

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
)

// speakANP asks by the JSON-RPC of ANP.
func speakANP(t *testing.T, s *site) speaker {
	return func(ctx context.Context, r request) (string, error) {
		tool, args, err := toolOf(r)
		if err != nil {
			return "", err
		}
		args["_meta"] = termsOf(r)
		var got struct {
			Error *struct {
				Message string
				Data    struct {
					Fault string
					Human bool `json:"humanAuthorization"`
				}
			}
		}
		switch err := s.post(ctx, "/anp/rpc", map[string]any{"jsonrpc": "2.0", "id": 1, "method": tool, "params": args}, &got); {
		case err != nil:
			return "", err
		case got.Error == nil:
			return "", nil
		case got.Error.Data.Human:
			return approval, nil
		}
		return got.Error.Data.Fault, errors.New(got.Error.Message)
	}
}

// TestANP finds a site as a client of ANP does, checks its documents by the tools of OpenRPC, and
// calls what they describe.
func TestANP(t *testing.T) {
	r := harness.Start(t, `site: { name: shed }
protocols: [anp]
devices:
  lamp: { driver: sim, model: relay, min_off: 0s }
  gate: { driver: sim, model: relay, min_off: 0s, confirm: owner }
  dim: { driver: sim, model: dimmer, min_off: 0s }
  den: { driver: sim, model: climate }
`, harness.Need(t, "the program", harness.Program))
	token, _ := r.AddToken(t, "caller", "read *, set *")
	t.Log(script(t, time.Minute, "anp.mjs", r.URL, token))
}
