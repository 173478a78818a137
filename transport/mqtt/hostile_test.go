package mqtt

import (
	"strings"
	"testing"
	"time"
)

// TestLateWill: a site that is there says so again where somebody else said that it is gone, as a broker does that
// publishes the will of an earlier connection late.
func TestLateWill(t *testing.T) {
	r := newRig(t, all, nil, nil)
	_, told := r.last(r.status())
	r.send(r.status(), offline, 0)
	r.until("it is told again", func() bool { s, n := r.last(r.status()); return s == online && n > told })
}

// TestPermittedLength: an output is held by leases as long as the permission allows where that is less.
func TestPermittedLength(t *testing.T) {
	r := newRig(t, "read greenhouse, set greenhouse/heater max 1s", nil, func(a *Agent) { a.lease = 0 })
	r.send(r.topic("heater/set"), "ON", 0)
	r.is("heater", on)
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if r.site.Value("greenhouse/heater") != on {
			t.Fatal("the lease is not renewed")
		}
	}
}

// TestFloodOfBytes: few messages that are long are too much as well.
func TestFloodOfBytes(t *testing.T) {
	r := newRig(t, all, nil, func(a *Agent) { a.retry = time.Minute })
	long := strings.Repeat(" ", 200<<10)
	for range 10 {
		r.send(r.discoveryTopic(), long, 0)
	}
	r.until("it waits", func() bool { return strings.Contains(r.Report(t.Context()).Says, "messages in a second") })
}
