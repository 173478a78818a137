package site

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/things"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/identity"
	"agentsite/node/state"
)

// openAccess loads the access store of the folder's site. onRevoke is called after each
// revocation, to end the leases that depended on it.
func openAccess(f state.Folder, site identity.ID, onRevoke func()) (*access.Book, error) {
	o := access.Options{
		Site: site, Build: built(), System: systemClock, Ended: onRevoke,
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
	if !owns(b, id) {
		slog.Warn("others own this site already, and its configuration does not change that: agentsite owners lists them", "owner", did)
	}
	return nil
}

func owns(b *access.Book, id identity.ID) bool {
	return slices.ContainsFunc(b.Owners(), func(o access.Owner) bool { return o.ID == id })
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

// permissions is a book as the door has it.
type permissions struct {
	*access.Book
	url string // the site's
}

var _ node.Access = permissions{}

func (p permissions) Bearer(token string) (agents.Principal, error) {
	who, err := p.Book.Bearer(token, p.url)
	return who, denial(err)
}

// Peer knows owners, and who has a permission.
func (p permissions) Peer(text string) (agents.Principal, error) {
	id, err := identity.Parse(text)
	if err != nil {
		return agents.Principal{}, device.Faultf(device.Denied, "%v", err)
	}
	if p.Account(id) == "" {
		return agents.Principal{}, device.Faultf(device.Denied, "your key, %v, has no permission here: an owner can grant one", id)
	}
	return agents.Principal{ID: id.String(), Owner: owns(p.Book, id)}, nil
}

func (p permissions) May(who agents.Principal, ask agents.Ask) (agents.Limits, error) {
	l, err := p.Book.May(who, ask)
	return l, denial(err)
}

func (p permissions) Take(who agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	l, err := p.Book.Take(who, ask, confirmed)
	return l, denial(err)
}

func (p permissions) Sees(who agents.Principal, ask agents.Ask) bool { return p.Book.Sees(who, ask) }

// denial is a refusal as a fault. What is over by itself is busy.
func denial(err error) error {
	var d *access.Denied
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &d):
		slog.Error("a call could not be counted", "err", err)
		return device.Faultf(device.Unavailable, "this call counts against a rate, and its site's disk does not take that down; have the owner see to it. A return to safe and the emergency stop work")
	case d.Retry > 0:
		return device.Faultf(device.Busy, "%s", d.Msg)
	}
	return device.Faultf(device.Denied, "%s", d.Msg)
}

// returnRevoked sends to safe what principals hold that may not move it any more. It does
// not wait for that.
func returnRevoked(ctx context.Context, b *access.Book, outputs things.Outputs) {
	for _, s := range outputs.Status() {
		if !granted(s.Holder) || b.Holds(s.Holder, s.Output) {
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

// granted reports whether a principal with that ID has its permissions from a grant.
func granted(id string) bool {
	return strings.HasPrefix(id, "token:") || strings.HasPrefix(id, "did:key:")
}
