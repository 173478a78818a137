// Package remote has the owners' operations that update a site from afar. The site downloads from its own channel,
// verifies and stages the update as its user, and ends: the service manager starts it again, and installs the update
// before. What the owner sends is the name of a channel and of a version, and no address.
package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
)

const (
	// pause is the least time between two attempts.
	pause = time.Minute
	// safeTimeout bounds the wait for outputs that left safe during the download.
	safeTimeout = 10 * time.Minute
	findTimeout = 20 * time.Second // as a caller waits
)

// The owners' operations.
const (
	VersionAct op.Name[Look, Version]   = "owner/version" // answers the version, and what the channel offers
	UpdateAct  op.Name[Wanted, Version] = "owner/update"  // begins an update
)

// Look is the request of VersionAct.
type Look struct {
	Look    bool   `json:"look,omitzero"` // also at the channel
	Channel string `json:"channel,omitzero"`
	Version string `json:"version,omitzero"`
}

// Wanted is the request of UpdateAct.
type Wanted struct {
	Channel string `json:"channel,omitzero"` // "" as the superuser of the board chose
	Version string `json:"version,omitzero"` // "" for the newest
	Now     bool   `json:"now,omitzero"`     // also while an output is away from safe
}

// Version answers both operations.
type Version struct {
	Version  string   `json:"version"`           // of the running program
	Proven   bool     `json:"proven"`            // it is not on trial
	Failed   string   `json:"failed,omitzero"`   // the last version that was rolled back
	Waits    bool     `json:"waits,omitzero"`    // an update is installed at the next start
	Cannot   string   `json:"cannot,omitzero"`   // why the site cannot update itself
	Offered  string   `json:"offered,omitzero"`  // by the channel
	Newer    bool     `json:"newer,omitzero"`    // Offered may be installed
	Work     *Work    `json:"work,omitzero"`     // since the start of the site
	Problems []string `json:"problems,omitzero"` // devices, outputs and agents that are not well
}

// WorkState is the state of an update.
type WorkState string

const (
	Downloads WorkState = "downloads"
	Waits     WorkState = "waits" // for outputs to be safe
	Restarts  WorkState = "restarts"
	Failed    WorkState = "failed"
)

// Work is the last update that an owner began.
type Work struct {
	Version string    `json:"version"`
	State   WorkState `json:"state"`
	Error   string    `json:"error,omitzero"`
	Done    int64     `json:"done,omitzero"` // of Size, in bytes
	Size    int64     `json:"size,omitzero"`
}

// Offer is a release of the channel.
type Offer struct {
	Version string
	Size    int64
	Old     error // why it may not be installed; nil where it may
	// Stage downloads and verifies it for the next start. It calls progress with the bytes that are done.
	Stage func(ctx context.Context, progress func(done int64)) error
}

// Status is the state of the programs of a board.
type Status struct {
	Proven, Waits bool
	Failed        string
}

// Parts hold the parts of the site that an Updater uses.
type Parts struct {
	Version  string
	Cannot   string // why the site cannot update itself; "" where it can
	Status   func() (Status, error)
	Find     func(ctx context.Context, channel, version string) (Offer, error)
	Away     func() []string                         // the outputs that are away from safe
	Problems func(context.Context) map[string]string // by the names of things
	Busy     func() error                            // why the site may not restart now; nil where it may
	Restart  func()                                  // ends the site
	Note     func(says string)                       // writes to the journal
	Failed   func(says string)                       // is called for an update that failed before the restart
	Own      func(who agents.Principal, method, about string, do func() error) error
}

// Updater updates the site, one update at a time. Its methods may be called concurrently.
type Updater struct {
	Parts
	mu    sync.Mutex
	work  *Work
	begun time.Time // the last attempt
	jobs  chan job
}

type job struct {
	offer Offer
	now   bool
}

// New returns an updater. Run does what it is asked for.
func New(p Parts) *Updater { return &Updater{Parts: p, jobs: make(chan job, 1)} }

// Operations returns the owners' operations.
func (u *Updater) Operations() []op.Row {
	return []op.Row{
		op.ForOwners(VersionAct, agents.Reads, "fleet update --check", "Tell the version, and what the site's channel "+
			"offers.", u.version),
		op.ForOwners(UpdateAct, agents.Acts, "fleet update",
			"Install a newer version from the site's channel, and restart; it rolls back by itself if it fails.", u.update),
	}
}

func (u *Updater) version(ctx context.Context, _ agents.Principal, l Look) (Version, error) {
	v := Version{Version: u.Version, Proven: true, Cannot: u.Cannot}
	if u.Cannot == "" {
		s, err := u.Status()
		if err != nil {
			return v, device.Faultf(device.Unavailable, "%w", err)
		}
		v.Proven, v.Waits, v.Failed = s.Proven, s.Waits, s.Failed
		if l.Look {
			ctx, cancel := context.WithTimeout(ctx, findTimeout)
			defer cancel()
			offer, err := u.Find(ctx, l.Channel, l.Version)
			if err != nil {
				return v, device.Faultf(device.Unavailable, "%w", err)
			}
			v.Offered, v.Newer = offer.Version, offer.Old == nil
		}
	}
	for name := range u.Problems(ctx) {
		v.Problems = append(v.Problems, name)
	}
	slices.Sort(v.Problems)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.work != nil {
		v.Work = new(*u.work)
	}
	return v, nil
}

func (u *Updater) update(ctx context.Context, who agents.Principal, w Wanted) (v Version, err error) {
	err = u.Own(who, "update", strings.TrimSpace(w.Channel+" "+w.Version), func() error { return u.begin(ctx, w) })
	if err != nil {
		return v, err
	}
	return u.version(ctx, who, Look{})
}

// begin looks at the channel, and leaves the rest to Run.
func (u *Updater) begin(ctx context.Context, w Wanted) error {
	if u.Cannot != "" {
		return device.Faultf(device.Denied, "%s", u.Cannot)
	}
	if err := u.Busy(); err != nil {
		return err
	}
	if away := u.Away(); len(away) > 0 && !w.Now {
		return device.Faultf(device.Unsafe, "%s is away from safe, and a restart would switch it there: wait, or update "+
			"with --now",
			strings.Join(away, ", "))
	}
	u.mu.Lock()
	rest := pause - time.Since(u.begun)
	switch {
	case u.work != nil && u.work.State != Failed:
		u.mu.Unlock()
		return device.Faultf(device.Busy, "the update to %s is under way", u.work.Version)
	case !u.begun.IsZero() && rest > 0:
		u.mu.Unlock()
		return device.Faultf(device.Busy, "the last update was begun less than %s ago: try again later",
			device.FormatDuration(pause)).In(rest)
	}
	before := u.work
	u.begun, u.work = time.Now(), &Work{Version: w.Version, State: Downloads}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	offer, err := u.Find(ctx, w.Channel, w.Version)
	switch {
	case err != nil:
		err = device.Faultf(device.Unavailable, "%w", err)
	case offer.Old != nil:
		err = device.Faultf(device.Invalid, "%w", offer.Old)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		u.work = before
		return err
	}
	u.work = &Work{Version: offer.Version, State: Downloads, Size: offer.Size}
	u.jobs <- job{offer, w.Now} // it has room: one is under way at a time
	return nil
}

// Run makes updates until ctx ends.
func (u *Updater) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-u.jobs:
			if err := u.make(ctx, j); err != nil && ctx.Err() == nil {
				u.Failed(fmt.Sprintf("the update to %s failed: %s", j.offer.Version, device.Clip(err.Error(), 500)))
				u.set(func(w *Work) { w.State, w.Error = Failed, device.Clip(err.Error(), 1000) })
			}
		}
	}
}

func (u *Updater) set(change func(*Work)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u.work)
}

func (u *Updater) make(ctx context.Context, j job) error {
	err := j.offer.Stage(ctx, func(done int64) { u.set(func(w *Work) { w.Done = done }) })
	if err != nil {
		return err
	}
	u.set(func(w *Work) { w.State = Waits })
	for until := time.Now().Add(safeTimeout); ; {
		err := u.Busy()
		if away := u.Away(); err == nil && len(away) > 0 && !j.now {
			err = device.Faultf(device.Unsafe, "%s is away from safe", strings.Join(away, ", "))
		}
		if err == nil {
			break
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w; the update is installed at the next start", err)
		}
		if err := device.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	u.Note(fmt.Sprintf("the site ends for the update to %s", j.offer.Version))
	u.set(func(w *Work) { w.State = Restarts })
	u.Restart()
	return nil
}
