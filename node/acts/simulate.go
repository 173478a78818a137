package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// Simulated sets the value or the fault of a point of a simulated site. Without either it ends the point's fault. With
// a device's name as the point, a fault makes the whole device offline, and no fault brings it back.
type Simulated struct {
	Point string       `json:"point"`
	Value device.Value `json:"value,omitzero"`
	Fault string       `json:"fault,omitzero"` // why it cannot be read
}

// aboutFakes has the operation on the fakes of a simulated site, which no other site has. The journal has the moves
// that follow, and not what was measured.
func (s *Site) aboutFakes() []op.Row {
	if s.Simulate == nil {
		return nil
	}
	return []op.Row{
		op.ForOwners(SimulateAct, agents.Acts, "sim", "Have a point of a simulated site read a value or a fault.",
			func(ctx context.Context, _ agents.Principal, to Simulated) (None, error) {
				return None{}, s.Simulate(ctx, to)
			}),
	}
}
