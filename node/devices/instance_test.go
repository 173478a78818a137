package devices

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/device"
)

// TestHistoryKnowsChangedOutput: an output whose limit was changed has its value in the history
// although it does not move.
func TestHistoryKnowsChangedOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &bay{}, "  lamp: { driver: relay, pin: p2, max_on: 5m }\n")
		defer r.end()
		r.says(t, "switch_output", lampOn, "Value:on")
		time.Sleep(6 * time.Minute)
		r.text = strings.Replace(r.text, "5m", "4m", 1)
		if err := r.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		since := time.Now()
		time.Sleep(time.Minute)
		past, err := r.node.History(context.Background(), ann, agents.HistoryRequest{Point: "lamp/on", From: since.UTC().Format(time.RFC3339)})
		if n := len(past.Changes); err != nil || n == 0 || past.Changes[n-1].Value != device.Bool(false) {
			t.Errorf("%+v, %v", past.Changes, err)
		}
	})
}

// TestOpenHangsByItself: a device whose driver hangs as it opens does not keep the one at another pin
// from being opened, and is not called again itself.
func TestOpenHangsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		r := newRig(t, &bay{hangs: map[string]chan struct{}{"p4": back}}, "  soil: { driver: probe, pin: p4, unit: K }\n")
		defer r.end()
		defer close(back)
		time.Sleep(time.Hour)
		if len(r.hung) != 1 {
			t.Errorf("the driver that hangs was called %d times", len(r.hung))
		}
		r.text = strings.Replace(r.text, "p4", "p5", 1)
		if err := r.Reload(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		r.says(t, "read_points", `{"points":["soil/t"]}`, "Value:2")
	})
}
