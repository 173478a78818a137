package acts

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// Simulated is what a point of a simulated site reads from now on: a value or a fault. Without either, a fault of the
// point ends. A device's name in place of a point has the device answer nothing, for a fault, or answer again.
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
