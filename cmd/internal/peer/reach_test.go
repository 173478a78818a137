package peer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
	"agentsite/node/identity"
	"agentsite/transport/p2p"
)

// worldwide is a network in which a site is at some addresses, and at others nobody answers.
type worldwide struct {
	there    string        // where the site is; "" for nowhere
	refused  string        // where it refuses
	circuits []string      // at the network's relays
	found    []string      // by a lookup
	lookup   time.Duration // until the first of these
}

// dialTime is the duration of a dial of the site.
const dialTime = 10 * time.Millisecond

var errNobody = errors.New("nobody answers")

func (w worldwide) Reach(ctx context.Context, _ identity.ID, at []string) error {
	if slices.Contains(at, w.refused) {
		return p2p.ErrRefused
	}
	if !slices.Contains(at, w.there) {
		device.Sleep(ctx, 10*time.Second)
		return errNobody
	}
	device.Sleep(ctx, dialTime)
	return ctx.Err()
}

func (w worldwide) Circuits() []string { return w.circuits }

// Locate goes on long after the first address, for servers that do not answer.
func (w worldwide) Locate(ctx context.Context, _ identity.ID, found func(at []string)) error {
	device.Sleep(ctx, w.lookup)
	for _, a := range w.found {
		found([]string{a})
	}
	device.Sleep(ctx, 10*time.Second-w.lookup)
	if len(w.found) == 0 {
		return errNobody
	}
	return nil
}

// TestReachAnywhere: no way to a site waits for another one that does not answer, or for the end of
// the lookup.
func TestReachAnywhere(t *testing.T) {
	for name, c := range map[string]struct {
		worldwide
		known []string
		most  time.Duration
	}{
		"known":              {worldwide{there: "a", circuits: []string{"b"}}, []string{"a"}, dialTime},
		"at the other relay": {worldwide{there: "b", circuits: []string{"c", "b"}}, []string{"a"}, knownHeadStart + dialTime},
		"looked up": {worldwide{there: "b", circuits: []string{"c"}, found: []string{"d", "b", "e"}, lookup: time.Second},
			[]string{"a"}, knownHeadStart + time.Second + dialTime},
		"by its key":            {worldwide{there: "b", found: []string{"b"}, lookup: time.Second}, nil, time.Second + dialTime},
		"at a relay by its key": {worldwide{there: "b", circuits: []string{"b"}, lookup: time.Second}, nil, dialTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := reachAnywhere(t.Context(), c.worldwide, identity.ID{}, c.known)
				if took := time.Since(begun); err != nil || took > c.most {
					t.Errorf("after %v: %v", took, err)
				}
				synctest.Wait()
			})
		})
	}
}

// TestReachNowhere: the reason is that of the known addresses, or what the lookup says.
func TestReachNowhere(t *testing.T) {
	for name, c := range map[string]struct {
		worldwide
		known []string
		want  error
	}{
		"known":          {worldwide{found: []string{"b", "c"}, circuits: []string{"d"}}, []string{"a"}, errNobody},
		"not found":      {worldwide{circuits: []string{"d"}}, nil, errNobody},
		"found":          {worldwide{found: []string{"b"}}, nil, errNotThere},
		"refused":        {worldwide{refused: "b", found: []string{"b"}}, []string{"a"}, p2p.ErrRefused},
		"relay refuses":  {worldwide{refused: "d", circuits: []string{"d"}}, []string{"a"}, p2p.ErrRefused},
		"nothing to try": {worldwide{}, nil, errNobody},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := reachAnywhere(t.Context(), c.worldwide, identity.ID{}, c.known)
				if !errors.Is(err, c.want) || errors.Is(err, errReplaced) {
					t.Error(err)
				}
			})
		})
	}
}
