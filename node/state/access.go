package state

import (
	"errors"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"agentsite/node/access"
	"agentsite/node/identity"
)

// OpenAccess loads the access store of the folder's site. clock is the system's clock, and
// whether something synchronises it. The caller holds the lock.
func OpenAccess(f Folder, site identity.ID, clock func() (t time.Time, synchronised bool)) (*access.Store, error) {
	o := access.Options{
		Site: site, Build: BuildTime(), SystemClock: clock,
		SaveAccess: func(b []byte) error { return WriteAtomic(f.Path(AccessFile), b, 0o600) },
		SaveCounts: func(b []byte) error { return WriteAtomic(f.Path(CountsFile), b, 0o600) },
	}
	var err, err2 error
	o.Access, err = f.Read(AccessFile)
	o.Counts, err2 = f.Read(CountsFile)
	if err := errors.Join(err, err2); err != nil {
		return nil, f.Unusable(err)
	}
	b, err := access.NewStore(o)
	if err != nil {
		return nil, f.Unusable(errors.Join(err, errors.New("put back the files "+AccessFile+" and "+CountsFile+" as they were, or move both away: then all tokens and grants are gone")))
	}
	return b, nil
}

// SeedOwner makes the configuration's owner, a did:key, the owner of a site that has none.
// "" is for a configuration that names none.
func SeedOwner(b *access.Store, did string) error {
	if did == "" {
		return nil
	}
	id, err := identity.Parse(did)
	if err != nil {
		return Mistakef("owner: %w", err)
	}
	if !b.Claimed() {
		return b.Claim(access.Owner{ID: id})
	}
	if !b.Owns(id.String()) {
		slog.Warn("site has other owners; the configuration's owner is ignored, see agentsite owners", "owner", did)
	}
	return nil
}

// built is when the program's source was committed, in seconds since 1970. Builds for others set it,
// which have no record of the version control: -ldflags '-X agentsite/node/state.built=…'.
var built string

// BuildTime returns when the program's source was committed, before which no clock is right; the zero
// Time where the build did not record it.
func BuildTime() (t time.Time) {
	if seconds, err := strconv.ParseInt(built, 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				t, _ = time.Parse(time.RFC3339, s.Value) // zero after an error, which is never too late
			}
		}
	}
	return t
}
