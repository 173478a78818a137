package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/update/remote"
	ownerclient "agentsite/transport/owner/client"
)

const (
	updatePause = 2 * time.Second
	// UpdateTimeout bounds the update of one site: the download, and outputs that are away from safe.
	UpdateTimeout = 45 * time.Minute
	// silentTimeout bounds the time in which a site that is being updated does not answer, or still has the old version.
	silentTimeout = 5 * time.Minute
)

// Updated holds the result of an update at a site.
type Updated struct {
	State   string `json:"state"` // one of those below
	Version string `json:"version,omitzero"`
	Says    string `json:"says,omitzero"`
}

// The states of an update at a site.
const (
	IsUpdated  = "updated"
	IsCurrent  = "current"     // it had the version already
	Failed     = "failed"      // the version before runs on
	RolledBack = "rolled_back" // it did not run well, and the version before runs again
	NotWell    = "not_well"    // the new version runs, and something is wrong that was not before
	Untouched  = "untouched"   // a wave before has failed
)

// Update has a site install an update of its channel, and waits until the new version has proved itself there or has
// been rolled back.
func Update(
	ctx context.Context, dial func(context.Context) (*peer.Connection, error), w remote.Wanted,
) (Updated, error) {
	type begun struct{ before, now remote.Version }
	b, err := within(ctx, configTimeout, dial, func(ctx context.Context, c *peer.Connection) (b begun, err error) {
		if b.before, err = ownerclient.Call(ctx, c.Owner, remote.VersionAct, remote.Look{}); err != nil {
			return b, knowsNot(err, "does not update itself for its owners")
		}
		b.now, err = ownerclient.Call(ctx, c.Owner, remote.UpdateAct, w)
		return b, err
	})
	if err != nil {
		return Updated{Version: b.before.Version}, err
	}
	if b.now.Work == nil {
		return Updated{}, errors.New("the site does not say which version it installs")
	}
	target, heard := b.now.Work.Version, time.Now()
	for {
		v, err := within(ctx, confirmTimeout, dial, func(ctx context.Context, c *peer.Connection) (remote.Version, error) {
			return ownerclient.Call(ctx, c.Owner, remote.VersionAct, remote.Look{})
		})
		out := Updated{Version: v.Version}
		switch {
		case err != nil:
		case v.Work != nil && v.Work.State == remote.Failed:
			out.State, out.Says = Failed, target+": "+v.Work.Error
			return out, nil
		case v.Work != nil: // it has not restarted yet
			heard = time.Now()
		case v.Version == target && v.Proven:
			out.State = IsUpdated
			if worse := without(v.Problems, b.before.Problems); worse != nil {
				out.State, out.Says = NotWell, strings.Join(worse, ", ")+": agentsite doctor there says why"
			}
			return out, nil
		case v.Version != target && v.Failed == target && !v.Waits:
			out.State, out.Says = RolledBack, target+" did not run well there"
			return out, nil
		}
		if time.Since(heard) > silentTimeout {
			if err == nil {
				err = fmt.Errorf(
					"it runs %s, and not %s: journalctl -u agentsite-prepare on its machine says why", v.Version, target,
				)
			}
			return out, err
		}
		if err := device.Sleep(ctx, updatePause); err != nil {
			return out, err
		}
	}
}

// ReadVersion reads the version of a site, and what its channel offers where l says so.
func ReadVersion(ctx context.Context, c *peer.Connection, l remote.Look) (remote.Version, error) {
	v, err := ownerclient.Call(ctx, c.Owner, remote.VersionAct, l)
	return v, knowsNot(err, "does not update itself for its owners")
}

func without(all, known []string) (left []string) {
	for _, name := range all {
		if !slices.Contains(known, name) {
			left = append(left, name)
		}
	}
	return left
}

// Waves are the sizes of the first waves of an update, such as 1,10%,50%. All other sites follow in one more.
type Waves []wave

type wave struct {
	n       int
	percent bool // of all sites
}

// ParseWaves parses waves, with commas between.
func ParseWaves(text string) (w Waves, err error) {
	for part := range strings.SplitSeq(text, ",") {
		number, percent := strings.CutSuffix(strings.TrimSpace(part), "%")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || percent && n > 100 {
			return nil, fmt.Errorf("waves are numbers of sites or per cents, such as 1,10%%,50%%, not %.40q", text)
		}
		w = append(w, wave{n, percent})
	}
	return w, nil
}

// Split splits sites into waves, in their order.
func (w Waves) Split(sites []peer.Contact) (all [][]peer.Contact) {
	left := sites
	for _, one := range w {
		n := one.n
		if one.percent {
			n = (len(sites)*one.n + 99) / 100
		}
		if n = min(n, len(left)); n > 0 {
			all, left = append(all, left[:n]), left[n:]
		}
	}
	if len(left) > 0 {
		all = append(all, left)
	}
	return all
}
