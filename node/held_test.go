package node

import (
	"context"
	"testing"

	"agentsite/agents"
	"agentsite/device"
)

// TestHeldChange: another value of the caller's own lease is a move, which is written down before it is
// made and charged; it begins no lease and changes nobody else's.
func TestHeldChange(t *testing.T) {
	withGuard(t, func(d *desk) {
		change := func(p agents.Principal, to float64, fault device.FaultKind) {
			t.Helper()
			if _, err := d.Node.Move(context.Background(), p, agents.MoveRequest{Output: arm, Value: device.Number(to), Terms: agents.Terms{Held: true}}); kindOf(err) != fault {
				t.Error(err)
			}
		}
		change(ann, 20, device.Expired)
		d.heldBy(t, "", 0)
		d.asks(boss, 10, "")
		change(ann, 20, device.Expired)
		d.heldBy(t, boss.ID, 10)
		change(boss, 20, "")
		d.heldBy(t, boss.ID, 20)
		d.book.full = device.Faultf(device.Unavailable, "the disk is full")
		change(boss, 30, device.Unavailable)
		d.heldBy(t, boss.ID, 20)
	})
}
