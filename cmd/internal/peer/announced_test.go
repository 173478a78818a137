package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/device"
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
				device.Sleep(ctx, time.Second)
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

// TestAnnouncedTwice: an address is dialled once, and again after it was replaced. A dial that is over
// is replaced first, and one that a machine has accepted last.
func TestAnnouncedTwice(t *testing.T) {
	var dials announcedDials
	ctx := t.Context()
	all := make([]*announcedDial, maxDials)
	for n := range all {
		all[n] = dials.admit(ctx, fmt.Sprint(n))
		all[n].stage.Store(dialAccepted)
	}
	if dials.admit(ctx, "0") != nil {
		t.Error("an address is dialled twice")
	}
	all[3].stage.Store(dialBegun)
	all[5].stage.Store(dialOver)
	for at, n := range []int{5, 3} {
		further := dials.admit(ctx, fmt.Sprint("further", at))
		further.stage.Store(dialAccepted)
		if context.Cause(all[n].ctx) != errReplaced {
			t.Errorf("%d is not replaced", n)
		}
	}
	if _, err := all[3].attempt(func(ctx context.Context, _ func()) (lanConn, error) { return lanConn{}, ctx.Err() })(ctx, nil); err != errReplaced {
		t.Errorf("it ends with %v", err)
	}
	if dials.admit(ctx, "3") == nil {
		t.Error("an address that was replaced is not dialled again")
	}
	replaced := 0
	for n := range 2 * maxDials { // addresses at which nobody is
		dials.admit(ctx, fmt.Sprint("invented", n))
	}
	for _, n := range all {
		if n.ctx.Err() != nil {
			replaced++
		}
	}
	if replaced > 3 || len(dials) != maxDials {
		t.Errorf("%d are replaced, of %d", replaced, len(dials))
	}
}

// TestReasons: thousands of addresses that are refused at once make no endless error.
func TestReasons(t *testing.T) {
	_, err := race(t.Context(), time.Minute, func(lanConn) {}, []attempt[lanConn]{func(ctx context.Context, add func(attempt[lanConn])) (lanConn, error) {
		var dials announcedDials
		for n := range 5000 {
			add(dials.admit(ctx, fmt.Sprint(n)).attempt(func(context.Context, func()) (lanConn, error) { return lanConn{}, errors.New("refused") }))
		}
		return lanConn{}, errors.New("no announced address leads to it")
	}})
	if err == nil || len(err.Error()) > 20*maxReasons {
		t.Errorf("%d bytes", len(err.Error()))
	}
}
