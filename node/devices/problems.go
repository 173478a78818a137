package devices

import (
	"context"

	"agentsite/device"
)

// Problems returns why devices are missing, or none of their points can be read, by their names. It blocks until
// Run answers, or ctx ends.
func (m *Manager) Problems(ctx context.Context) (all map[string]string, err error) {
	err = m.ask(ctx, false, func(context.Context) error {
		all = make(map[string]string)
		for _, d := range m.devices {
			if why := m.problem(d); why != "" {
				all[d.Name] = why
			}
		}
		return nil
	})
	if err != nil { // do may still run, and all is its
		return nil, err
	}
	return all, nil
}

func (m *Manager) problem(d *instance) (why string) {
	if d.missing != nil {
		return d.missing.Error()
	}
	for _, p := range d.points.Description.Points {
		r, ok := m.Hub.Latest(device.Address(d.Name, p.Name))
		switch {
		case !ok:
		case r.Quality == device.Good:
			return ""
		default:
			why = r.Why
		}
	}
	return why
}
