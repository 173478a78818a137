package site

import (
	"context"
	"fmt"
	"log/slog"

	"agentsite/cmd/internal/ops"
	"agentsite/node/rollback"
	"agentsite/node/state"
	"agentsite/node/update/remote"
)

// newUpdater makes what updates the site for its owners.
func (s *site) newUpdater() *remote.Updater {
	p := remote.Parts{
		Version: s.Version, Problems: s.problems, Restart: s.restart, Note: s.note, Failed: s.notKept, Own: s.node.Own,
		Status: func() (remote.Status, error) {
			u, err := ops.ReadUpdateStatus(s.Update)
			return remote.Status{Proven: u.Proven, Waits: u.Waits, Failed: u.Failed.Version}, err
		},
		Find: s.findUpdate,
		Away: func() (away []string) {
			for _, o := range s.outputs.Status() {
				if !o.Safe {
					away = append(away, o.Output)
				}
			}
			return away
		},
		Busy: func() error {
			if s.trials.Running() { // which a restart would roll back
				return rollback.ErrRuns
			}
			return nil
		},
	}
	switch {
	case s.Simulate:
		p.Cannot = errSimulated.Error()
	case s.restart == nil || !s.Update.Installed():
		p.Cannot = "only the service of agentsite's package updates itself: replace the program on its machine"
	}
	return remote.New(p)
}

// failedUpdateFile in the data folder has the last version whose rollback was told.
const failedUpdateFile = "failed-update"

// tellFailedUpdate tells once that the version before this one was rolled back, which happens before the site starts.
func (s *site) tellFailedUpdate() {
	if s.Simulate || !s.Update.Installed() {
		return
	}
	u, err := ops.ReadUpdateStatus(s.Update)
	if err != nil || u.Failed.Version == "" {
		return
	}
	failed := fmt.Sprintf("%s %d\n", u.Failed.Version, u.Failed.Sequence)
	told, err := s.Folder.Read(failedUpdateFile)
	if err == nil && string(told) == failed {
		return
	}
	s.notKept("the update to " + u.Failed.Version + " did not run well, and was rolled back")
	if err := state.WriteAtomic(s.Folder.Path(failedUpdateFile), []byte(failed), 0o600); err != nil {
		slog.Warn("the rollback of an update is told again after the next start", "err", err)
	}
}

// findUpdate returns what the site's own channel offers. The owner names a channel and a version, and no address.
func (s *site) findUpdate(ctx context.Context, channel, version string) (remote.Offer, error) {
	o := s.Update
	o.Name, o.Version = channel, version
	found, err := ops.FindUpdate(ctx, o)
	if err != nil {
		return remote.Offer{}, err
	}
	return remote.Offer{
		Version: found.Version, Size: found.Size, Old: found.Old,
		Stage: func(ctx context.Context, progress func(int64)) error {
			o.Progress = func(done, _ int64) { progress(done) }
			_, err := ops.StageOffer(ctx, o, found)
			return err
		},
	}, nil
}
