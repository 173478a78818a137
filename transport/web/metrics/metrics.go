// Package metrics serves a site's counters in the text format of Prometheus (0.0.4). It imports
// transport/web for the route, node for the counters and the permission to read them, and the
// vocabularies below those.
package metrics

import (
	"fmt"
	"net/http"

	"agentsite/agents"
	"agentsite/device/guard"
	"agentsite/node"
	"agentsite/transport/web"
)

// Outputs is the state of the outputs.
type Outputs interface {
	Status() []guard.Status
	Stopped() bool
}

// Route returns the route of /metrics. It is for callers that may read all points, because it has
// metrics of all of them. The counters are read when they are asked for. The lines are written by
// hand, because the client library adds 4.4 MB to the ARMv6 binary.
func Route(n *node.Node, hub *node.Hub, outputs Outputs, version string) web.Route {
	return web.Route{Pattern: "GET /metrics", Admission: web.Principals, Serve: func(w http.ResponseWriter, _ *http.Request, c web.Caller) {
		// not agents.Reads, which would do for one point
		if err := n.May(c.Who, agents.Ask{Op: agents.OpStatus}); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		readings, coalesced, watchers := hub.Counts()
		away, stopped := 0, 0
		for _, s := range outputs.Status() {
			if !s.Safe {
				away++
			}
		}
		if outputs.Stopped() {
			stopped = 1
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, m := range []struct {
			name, labels, kind, help string
			value                    any
		}{
			{"agentsite_info", fmt.Sprintf("{version=%q}", version), "gauge", "The program.", 1},
			{"agentsite_readings_total", "", "counter", "Readings taken in.", readings},
			{"agentsite_changes_coalesced_total", "", "counter", "Changes that a slow watcher was told of together.", coalesced},
			{"agentsite_watchers", "", "gauge", "Open subscriptions.", watchers},
			{"agentsite_outputs_away_from_safe", "", "gauge", "Outputs that are not known to be at their safe value.", away},
			{"agentsite_emergency_stop", "", "gauge", "1 while the emergency stop is latched.", stopped},
		} {
			fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s %[3]s\n%[1]s%[4]s %[5]v\n", m.name, m.help, m.kind, m.labels, m.value)
		}
	}}
}
