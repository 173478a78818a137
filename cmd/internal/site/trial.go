package site

import (
	"context"
	"os"

	"agentsite/agents/agent"
	"agentsite/cmd/internal/ops"
	"agentsite/node/rollback"
	"agentsite/node/state"
)

// openTrials settles a trial of a configuration that the last run did not end, before the configuration is read.
func (s *site) openTrials() error {
	file := s.Folder.Path(state.TrialFile)
	if _, err := os.Stat(file); err == nil {
		unlock, err := s.Folder.Lock() // no other site is running it
		if err != nil {
			return err
		}
		defer unlock()
		if err := s.checkFolder(); err != nil { // a simulation settles no trial of a site with real devices
			return err
		}
	}
	s.trials, s.settled = rollback.Open(rollback.Options{
		Read:    func() ([]byte, error) { return s.Folder.ReadAtMost(state.TrialFile, rollback.MaxRecord) },
		Write:   func(text []byte) error { return state.WriteAtomic(file, text, 0o600) },
		Rewrite: s.rewrite, Restore: state.Restore, Restart: s.restart,
	})
	return nil
}

// rewrite replaces the text of the configuration's file, except in a simulation.
func (s *site) rewrite(file string, before, text []byte) error {
	if s.Simulate {
		return errSimulated
	}
	return ops.Rewrite(ops.RewriteSocket, file, before, text)
}

// runTrials watches trials of configurations until ctx ends.
func (s *site) runTrials(ctx context.Context) {
	s.tellFailedUpdate()
	if s.settled != "" {
		if s.trials.Running() {
			s.note(s.settled)
		} else {
			s.notKept(s.settled)
		}
	}
	s.trials.Run(ctx, rollback.Site{Reload: s.devices.Reload, Problems: s.problems, NotKept: s.notKept, Turn: s.changing})
}

// notKept writes to the journal that a new configuration or version was not kept, and tells it.
func (s *site) notKept(says string) {
	s.note(says)
	s.occurrences.RolledBack(says)
}

// problems returns what is wrong with devices, outputs and agents, by their names.
func (s *site) problems(ctx context.Context) map[string]string {
	all := make(map[string]string)
	bad, err := s.devices.Problems(ctx)
	if err != nil {
		all["the devices"] = "do not answer: " + err.Error()
	}
	for name, why := range bad {
		all[name] = "is missing: " + why
	}
	for _, o := range s.outputs.Status() {
		if o.Fault != "" {
			all[o.Output] = "does not follow: " + o.Fault
		}
	}
	for _, a := range s.hosting.List(ctx) {
		if a.State == agent.Failed {
			all["the agent "+a.Name] = "has failed: " + a.Says
		}
	}
	return all
}
