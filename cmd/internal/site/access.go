package site

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"agentsite/agents/things"
	"agentsite/device/host"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// openAccess loads the access store of the folder's site. onRevoke is called after each
// revocation, to end the leases that depended on it.
func openAccess(f state.Folder, site identity.ID, onRevoke func()) (*access.Book, error) {
	o := access.Options{
		Site: site, Build: built(), System: host.SystemClock, Ended: onRevoke,
		SaveBook:  func(b []byte) error { return state.WriteAtomic(f.Path(state.AccessFile), b, 0o600) },
		SaveMeter: func(b []byte) error { return state.WriteAtomic(f.Path(state.CountsFile), b, 0o600) },
	}
	var err, err2 error
	o.Book, err = f.Read(state.AccessFile)
	o.Meter, err2 = f.Read(state.CountsFile)
	if err := errors.Join(err, err2); err != nil {
		return nil, f.Unusable(err)
	}
	b, err := access.NewBook(o)
	if err != nil {
		return nil, f.Unusable(errors.Join(err, errors.New("put back the files "+state.AccessFile+" and "+state.CountsFile+" as they were, or move both away: then nobody but you has a permission any more")))
	}
	return b, nil
}

// seedOwner has the configuration's owner own a site that nobody owns yet.
func seedOwner(b *access.Book, did string) error {
	if did == "" {
		return nil
	}
	id, err := identity.Parse(did)
	if err != nil {
		return state.Mistakef("owner: %w", err)
	}
	if !b.Claimed() {
		return b.Claim(access.Owner{ID: id})
	}
	if !b.Owns(id.String()) {
		slog.Warn("others own this site already, and its configuration does not change that: agentsite owners lists them", "owner", did)
	}
	return nil
}

// built is when the program's source was committed, the zero Time where nobody noted it.
func built() (t time.Time) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				t, _ = time.Parse(time.RFC3339, s.Value) // or it stays zero, which is never too late
			}
		}
	}
	return t
}

// returnRevoked sends to safe what principals hold that may not move it any more. It does
// not wait for that.
func returnRevoked(ctx context.Context, b *access.Book, outputs things.Outputs) {
	for _, s := range outputs.Status() {
		if !access.ByGrant(s.Holder) || b.Holds(s.Holder, s.Output) {
			continue
		}
		go func() {
			slog.Info("an output goes to safe: its holder's permission has ended", "output", s.Output, "holder", s.Holder)
			if _, err := outputs.Release(ctx, s.Output); err != nil {
				slog.Error("an output whose holder's permission has ended is not known to be safe", "output", s.Output, "err", err)
			}
		}()
	}
}
