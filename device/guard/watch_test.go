package guard

import (
	"context"

	"agentsite/device"
)

// Watch emits a reading whenever an output changes, with its whole address,
// until ctx ends; first of all it emits them all. An output whose state is not
// known reads as a fault.
func (g *Guard) Watch(ctx context.Context, emit func(device.Reading)) error {
	last := make(map[string]Status)
	for {
		var changes []device.Reading
		err := g.wait(ctx, func(now Time) bool {
			changes = changes[:0]
			for i := range g.m.outputs {
				s := g.m.Status(now, i)
				if was := last[s.Output]; s.Output != was.Output || s.Value != was.Value || s.Fault != was.Fault {
					changes = append(changes, s.Reading())
				}
				last[s.Output] = s
			}
			return len(changes) > 0
		})
		if err != nil {
			return err
		}
		for _, r := range changes {
			emit(r)
		}
	}
}
