package site

import (
	"fmt"
	"net/http"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/transport/rpc"
)

// metrics serves what the site counts, in the text format of Prometheus (0.0.4).
// Everything is read when it is asked for: counting costs nothing in between. The
// lines are written by hand because the client library takes 4.4 of the 16 MB
// that the ARMv6 binary may have.
//
// They tell of all points, and so are for who may read all of them.
func metrics(door *node.Node, hub *node.Hub, outputs node.Outputs, version string) func(http.ResponseWriter, *http.Request, rpc.Evidence) {
	return func(w http.ResponseWriter, _ *http.Request, e rpc.Evidence) {
		who, err := door.Who(node.Evidence(e))
		if err == nil {
			err = door.May(who, agents.Ask{Op: agents.OpStatus}) // and not agents.Reads, which would do for one point
		}
		if err != nil {
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
	}
}
