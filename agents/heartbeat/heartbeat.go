// Package heartbeat is the smallest hosted agent: each minute it shows on a display that
// the site is alive.
package heartbeat

import (
	"context"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/device"
)

// Kind is the entry of the list of kinds.
var Kind = agent.Kind{Name: "heartbeat", Doc: "shows on a display, each minute, how long the agent has run", New: func() agent.Agent { return new(Agent) }}

// Agent is a heartbeat.
type Agent struct {
	Display string `json:"display" jsonschema:"the point of a display, as device/point"`
}

// Run shows a text at once and then each minute. It needs the permission to show on its
// display, and fails without.
func (a *Agent) Run(ctx context.Context, self agents.Principal, site agents.Site) error {
	began := time.Now()
	for each := time.NewTicker(time.Minute); ; {
		text := "up " + device.FormatDuration(time.Since(began).Truncate(time.Minute))
		if err := site.Show(ctx, self, agents.ShowRequest{Display: a.Display, Text: text}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-each.C:
		}
	}
}
