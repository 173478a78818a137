//go:build e2e

package protocols

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/httpsig"

	"github.com/go-json-experiment/json"
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

// TestANPSigned signs requests by another program, of which some count, and has it verify one of ours.
func TestANPSigned(t *testing.T) {
	r := harness.Start(t, `site: { name: shed }
protocols: [anp]
devices:
  lamp: { driver: sim, model: relay }
  den: { driver: sim, model: climate }
`, harness.Need(t, "the program", harness.Program))
	key := identity.New()
	if _, err := r.CLI(t, "clock", "--set"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.CLI(t, "grant", key.ID().String(), "read den"); err != nil {
		t.Fatal(err)
	}
	const body, url = "{}", "https://garden.example.org:8474/anp/rpc?a=%41"
	ours, err := http.NewRequest("POST", url, nil)
	if err == nil {
		err = httpsig.Sign(ours, []byte(body), key.ID().String(), key.Private(), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	headers := make(map[string]string)
	for name := range ours.Header {
		headers[name] = ours.Header.Get(name)
	}
	text, err := json.Marshal(map[string]any{"url": url, "body": body, "headers": headers})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(script(t, time.Minute, "anp_signed.mjs", r.URL, string(key.PEM()), key.ID().String(), string(text)))
}

// TestANPOnce kills a site while an agent elsewhere works on its call. The call is not made again,
// and the task has an unknown outcome.
func TestANPOnce(t *testing.T) {
	var called atomic.Int32
	began, leave := make(chan struct{}, 1), make(chan struct{})
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(leave)
	mux.HandleFunc("GET /ad.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"slow","interfaces":[{"type":"StructuredInterface","protocol":"openrpc","url":"%s/interface.json"}]}`, server.URL)
	})
	mux.HandleFunc("GET /interface.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"servers":[{"url":"%s/rpc"}],"methods":[{"name":"brew","params":[]}]}`, server.URL)
	})
	mux.HandleFunc("POST /rpc", func(http.ResponseWriter, *http.Request) {
		called.Add(1)
		began <- struct{}{}
		<-leave
	})
	config := `site: { name: shed }
agents:
  pot: { kind: remote, anp: "` + server.URL + `/ad.json", may: ask brew }
  tea: { kind: routine, may: ask pot/brew, steps: [{ agent: pot/brew, within: 1m }] }
`
	data := harness.TempDir(t)
	program := harness.Need(t, "the program", harness.Program)
	r := harness.StartIn(t, data, config, nil, program)
	if _, err := r.CLI(t, "ask", "tea", "--no-wait"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-began:
	case <-time.After(time.Minute):
		t.Fatal("nothing was called")
	}
	r.Kill(t)
	r = harness.StartIn(t, data, config, nil, program)
	harness.WaitFor(t, time.Minute, "the task ends", func() bool {
		out, err := r.CLI(t, "tasks", "--json")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(out, `"state":"failed"`) && strings.Contains(out, string(device.UnknownOutcome))
	})
	if n := called.Load(); n != 1 {
		t.Errorf("it was called %d times", n)
	}
}
