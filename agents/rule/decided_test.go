package rule_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"agentsite/agents/agent"
	"agentsite/device"
)

// TestDecided: a rule at rest tells which reading decides its condition, as data and in words.
func TestDecided(t *testing.T) {
	inHouse(t, func(h *house) {
		report, end := h.run(frost, self)
		defer end()
		if r := report(); r.Decided != nil {
			h.t.Errorf("of an unknown condition: %+v", r)
		}
		h.temperature(6)
		synctest.Wait()
		want := []agent.Decided{{Point: temperature, Value: device.Number(6)}}
		if r := report(); !slices.Equal(r.Decided, want) || !strings.Contains(r.Says, temperature+" was 6") {
			h.t.Errorf("%+v", r)
		}
	})
}
