package node

import (
	"testing"

	"agentsite/agents"
	"agentsite/device"
)

// TestReadable: a caller is told of the points that it may read, of no other, and pays for each reading.
func TestReadable(t *testing.T) {
	bothWays(t, func(t *testing.T, r *watchRig) {
		l := &rated{leaves: &leaves{may: map[string][]string{"token:shy": {"read_points", "read_points lever/a"}}}}
		r.access = l
		l.left.Store(1)
		all, err := r.Readable(shy)
		if err != nil || len(all) != 1 || all[0].Point != "lever/a" || all[0].Kind == "" {
			t.Errorf("%+v, %v", all, err)
		}
		l.left.Store(1)
		if err := r.ChargeRead(shy, []string{"lever/b"}); device.AsFault(err).Kind != device.Denied {
			t.Errorf("of another point: %v", err)
		}
		l.left.Store(1)
		if err := r.ChargeRead(shy, []string{"lever/a"}); err != nil {
			t.Error(err)
		}
		if err := r.ChargeRead(shy, []string{"lever/a"}); device.AsFault(err).Kind != device.Busy {
			t.Errorf("beyond the rate: %v", err)
		}
		if _, err := r.Readable(agents.Principal{}); err == nil {
			t.Error("nobody may read")
		}
	})
}
