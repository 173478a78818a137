//go:build e2e

package access

import (
	"encoding/json"
	"testing"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/cmd/internal/peer"
	"agentsite/node/acts"
	"agentsite/node/state"
	"agentsite/transport/mcp/client"
	ownerclient "agentsite/transport/owner/client"
)

// TestReadYourOwnWrites: the changes of an answered move, release or stop are visible to every read
// that begins after the answer, over any carriers.
func TestReadYourOwnWrites(t *testing.T) {
	r := startOwned(t, "  box: { driver: sim, model: relay, min_off: 0 }\n")
	local, err := peer.Dial(peer.Target{Folder: state.Folder(r.Folder), Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	carriers := []struct {
		name string
		*client.Client
	}{
		{"HTTP", r.Client(t, false)},
		{"stdio", local.Client},
		{"libp2p", newCaller(t, r.owner, r.id, r.peers).Client},
	}
	ask := func(t *testing.T, c *client.Client, tool, args string, out any) {
		t.Helper()
		a, err := c.Ask(t.Context(), tool, []byte(args))
		if err == nil {
			err = json.Unmarshal(a.JSON, out)
		}
		if err != nil {
			t.Fatal(tool, err)
		}
	}
	n := harness.Workload(1000, 10000)
	for i, mover := range carriers {
		t.Run(mover.name, func(t *testing.T) {
			stale := 0
			// seen asks what is on, in two ways, by the same carrier and by the others in turn.
			seen := func(k int, on, stopped bool) {
				for _, reader := range []*client.Client{mover.Client, carriers[(i+k)%len(carriers)].Client} {
					var read struct{ Readings []struct{ Value bool } }
					ask(t, reader, "read_points", `{"points":["box/relay"]}`, &read)
					var status struct {
						Stopped bool       `json:"emergency_stop"`
						Away    []struct{} `json:"outputs_away_from_safe"`
					}
					ask(t, reader, "site_status", `{}`, &status)
					if len(read.Readings) != 1 || read.Readings[0].Value != on || len(status.Away) == 1 != on || status.Stopped != stopped {
						stale++
						t.Logf("%d: on %v, stopped %v, but %+v %+v", k, on, stopped, read, status)
					}
				}
			}
			var done struct{}
			for k := 0; k < n; {
				ask(t, mover.Client, "switch_output", `{"output":"box/relay","on":true,"for_seconds":60}`, &done)
				seen(k, true, false)
				k++
				if k%10 != 9 {
					ask(t, mover.Client, "release_output", `{"output":"box/relay"}`, &done)
					seen(k, false, false)
					k++
					continue
				}
				ask(t, mover.Client, "emergency_stop", `{}`, &done)
				seen(k, false, true)
				k++
				if _, err := ownerclient.Call(t.Context(), local.Owner, acts.ResetAct, acts.None{}); err != nil {
					t.Fatal(err)
				}
				seen(k, false, false)
			}
			if stale > 0 {
				t.Errorf("%d of %d answers were followed by a stale read", stale, n)
			}
		})
	}
}
