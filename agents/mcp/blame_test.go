package mcp

import (
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
)

// TestBlame: a child that one account's calls crash is off for that account alone.
func TestBlame(t *testing.T) {
	r := newRig(t, "crash", false, nil)
	r.acceptAll(t)
	call := func(account string) device.FaultKind {
		_, err := r.Call(t.Context(), agents.Principal{}, tools.Call{Tool: "weather_forecast", Account: account, Args: jsonArgs(`{"place":"here"}`)})
		return kindOf(err)
	}
	for n := range maxCrashes {
		if got := call("visitor"); got != device.UnknownOutcome {
			t.Fatalf("call %d: %s", n, got)
		}
		r.gone(t)
		if got := call("visitor"); got != device.Unavailable {
			t.Errorf("at once after call %d: %s", n, got)
		}
		r.mu.Lock()
		r.blamed["visitor"] = failures{r.blamed["visitor"].n, time.Time{}}
		r.mu.Unlock()
	}
	if got := call("visitor"); got != device.Unavailable {
		t.Errorf("it is not off for who crashes it: %s", got)
	}
	if got := call("owner"); got != device.UnknownOutcome { // it was started, and crashed
		t.Errorf("it is off for others: %s", got)
	}
	r.gone(t)
	if r.Resume(); call("visitor") != device.UnknownOutcome {
		t.Error("it is off after an owner resumed it")
	}
}
