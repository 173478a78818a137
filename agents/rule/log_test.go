package rule

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/alarm"
)

// TestRefusalsInTheLog: a rule that is refused for a day writes a line, and not one for each time
// that the refusal names.
func TestRefusalsInTheLog(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	r := &Rule{runner: &runner{world: World{AfterFunc: alarm.Go}}, When: "door/open", Hold: map[string]device.Value{"house/heater": device.Bool(true)}}
	m, err := r.NewMachine("rule:frost", []agents.Point{{Point: "door/open", Kind: device.KindState}, {Point: "house/heater", Kind: device.KindSwitch, Safe: device.Bool(false), MaxSeconds: 600}})
	if err != nil {
		t.Fatal(err)
	}
	l := &live{machine: m, self: agents.Principal{ID: "rule:frost"}, refused: make([]device.FaultKind, 1)}
	act := Act{Value: device.Bool(true), For: time.Minute}
	now := Moment{Now: time.Second}
	refuse := func(format string, kind device.FaultKind) {
		for i := range 1440 {
			now.Now += time.Minute
			m.Done(now, act, 0, 0, device.Faultf(kind, format, time.Duration(i)*time.Second))
			l.log()
		}
	}
	refuse("it rests for %v", device.Unsafe)
	refuse("it is held by rule:other for another %v", device.Busy)
	m.Done(now, act, time.Minute, 0, nil)
	l.log()
	refuse("it is held by rule:other for another %v", device.Busy)
	if n := bytes.Count(text.Bytes(), []byte("\n")); n != 3 {
		t.Errorf("%d lines", n)
	}
}
