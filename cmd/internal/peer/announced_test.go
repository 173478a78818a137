package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestInventedAddresses: a site is reached though a neighbour invents addresses for it, before it
// announces its own and afterwards; that no machine is there is found out late.
func TestInventedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := race(t.Context(), time.Minute, func(lanConn) {}, []attempt[lanConn]{func(ctx context.Context, add func(attempt[lanConn])) (lanConn, error) {
			var dials announcedDials
			invent := func(from string) {
				for n := range 10 * maxDials {
					add(dials.admit(ctx, fmt.Sprint(from, n)).attempt(func(ctx context.Context, _ func()) (lanConn, error) {
						<-ctx.Done()
						return lanConn{}, ctx.Err()
					}))
				}
			}
			invent("before")
			add(dials.admit(ctx, "site").attempt(func(ctx context.Context, accepted func()) (lanConn, error) {
				accepted()
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				return lanConn{address: "site"}, ctx.Err()
			}))
			synctest.Wait()
			invent("after")
			if len(dials) != maxDials {
				t.Errorf("%d addresses are dialled at once", len(dials))
			}
			<-ctx.Done()
			return lanConn{}, ctx.Err()
		}})
		if err != nil || got.address != "site" {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// TestAnnouncedTwice: an address is dialled once, again after it was replaced, and never in the place
// of one that a machine has accepted.
func TestAnnouncedTwice(t *testing.T) {
	var dials announcedDials
	ctx := t.Context()
	first := dials.admit(ctx, "0")
	for n := 1; n < maxDials; n++ {
		dials.admit(ctx, fmt.Sprint(n)).accepted.Store(true)
	}
	if dials.admit(ctx, "0") != nil {
		t.Error("an address is dialled twice")
	}
	further := dials.admit(ctx, "further")
	if _, err := first.attempt(func(ctx context.Context, _ func()) (lanConn, error) { return lanConn{}, ctx.Err() })(ctx, nil); !errors.Is(err, errReplaced) {
		t.Errorf("the oldest ends with %v", err)
	}
	if again := dials.admit(ctx, "0"); again == nil || further.ctx.Err() == nil {
		t.Error("an address that was replaced is not dialled again")
	} else {
		again.accepted.Store(true)
	}
	if dials.admit(ctx, "more") != nil {
		t.Error("an accepted connection is ended for an address that was only announced")
	}
}
