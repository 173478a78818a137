package rollback

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

// The owner's operations on trials.
const (
	TrialAct   op.Name[op.None, Status]      = "owner/trial"   // answers the last trial
	ConfirmAct op.Name[Confirmation, Status] = "owner/confirm" // ends a trial
)

// Status answers TrialAct and ConfirmAct.
type Status struct {
	State   State   `json:"state"`            // "" before the first trial
	Digest  string  `json:"digest,omitzero"`  // of the text on trial
	Who     string  `json:"who,omitzero"`     // the owner who began it
	Restart bool    `json:"restart,omitzero"` // it is tried by a restart of the site
	Left    float64 `json:"seconds_left,omitzero"`
	Problem string  `json:"problem,omitzero"` // a problem of the site that it did not have before
	Because string  `json:"because,omitzero"` // why it was rolled back
}

// Confirmation is the request of ConfirmAct.
type Confirmation struct {
	Digest string `json:"digest"`        // of the text on trial
	Back   bool   `json:"back,omitzero"` // the text before is put back at once
}

// Operations returns the owners' operations on m, which may be nil for a site without a file. own runs and journals
// what an owner does.
func (m *Manager) Operations(own func(who agents.Principal, method, about string, do func() error) error) []op.Row {
	return []op.Row{
		op.ForOwners(TrialAct, agents.Reads, "config trial", "Tell how the last trial of a configuration goes or ended.",
			func(context.Context, agents.Principal, op.None) (Status, error) { return m.status(), nil }),
		op.ForOwners(ConfirmAct, agents.Acts, "config trial",
			"Keep the configuration that is on trial, or put the one before back, once that is decided.",
			func(ctx context.Context, who agents.Principal, c Confirmation) (Status, error) {
				s := m.status()
				switch {
				case s.State == "" || s.Digest != c.Digest:
					return s, device.Faultf(device.Invalid, "no configuration with this digest is on trial")
				case s.State != Running:
					return s, nil // it tells how it ended, and does nothing
				}
				word := "confirm"
				if c.Back {
					word = "take-back"
				}
				var ended bool
				err := own(who, word, c.Digest, func() error {
					err := m.answer(ctx, c.Digest, !c.Back)
					s = m.status()
					if ended = err == nil; ended && !c.Back && s.State != Kept {
						err = device.Faultf(device.Unavailable, "it was rolled back")
					}
					return err
				})
				if ended { // the answer says how
					return s, nil
				}
				return s, err
			}),
	}
}

func (m *Manager) status() Status {
	if m == nil {
		return Status{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.trial
	s := Status{State: t.State, Digest: t.Digest, Who: t.Who, Restart: t.Restart, Because: t.Because}
	if t.State == Running {
		s.Left, s.Problem = m.left().Seconds(), m.problem
	}
	return s
}
