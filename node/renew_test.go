package node

import (
	"context"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/device/guard"
	"agentsite/node/access"
	"agentsite/node/identity"
)

// withGrants is withGuard for one caller, whose grants are given in words.
func withGrants(t *testing.T, do func(d *desk, caller agents.Principal, grant func(words string, until time.Duration) (revoke func())), bend ...func(*guard.Policy)) {
	owner, key := identity.New(), identity.New()
	withGuard(t, func(d *desk) {
		store, err := access.NewStore(access.Options{
			Site: identity.New().ID(), SystemClock: func() (time.Time, bool) { return time.Now(), true },
			SaveAccess: func([]byte) error { return nil }, SaveCounts: func([]byte) error { return nil },
			OnEnd: func() {},
		})
		if err != nil || store.Claim(access.Owner{ID: owner.ID()}) != nil {
			t.Fatal(err)
		}
		store.OnEnd = func() { // as the wiring has it
			for _, s := range d.site.Outputs.Status() {
				if s.Holder != "" && !store.MayHold(s.Holder, s.Output) {
					d.site.Outputs.Release(context.Background(), s.Output)
				}
			}
		}
		d.access = store
		do(d, agents.Principal{ID: key.ID().String()}, func(words string, until time.Duration) func() {
			may, err := access.ParsePermissions(words)
			if err != nil {
				t.Fatal(err)
			}
			g, err := access.Issue(owner, access.Block{Audience: key.ID(), Permissions: may, Until: time.Now().Add(until).Unix()})
			if err == nil {
				_, err = store.AddGrant(g.Bytes())
			}
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := store.Revoke(access.Revocation{Block: g.ID()}); err != nil {
					t.Error(err)
				}
			}
		})
	}, bend...)
}

// TestNoLengthWithMinOn: a permission with a longest lease holds an output no longer where the caller
// gives no length, although the output keeps each value for longer.
func TestNoLengthWithMinOn(t *testing.T) {
	withGrants(t, func(d *desk, caller agents.Principal, grant func(string, time.Duration) func()) {
		grant("set lever/arm max 90s", time.Hour)
		time.Sleep(5 * time.Minute) // min_on counts from the start
		d.asks(caller, 10, device.Invalid)
		d.heldBy(t, "", 0)
		if kind := d.holdsFor(caller, 10, 300); kind != device.Denied {
			t.Error(kind)
		}
	}, func(p *guard.Policy) { p.MinOn = 5 * time.Minute })
}

func (d *desk) holdsFor(p agents.Principal, v, seconds float64) device.FaultKind {
	_, err := d.Node.Move(context.Background(), p, agents.MoveRequest{Output: arm, Value: device.Number(v), For: &seconds})
	return kindOf(err)
}

// TestRenewalsByAnotherGrant: a renewal beyond the grant by which the output was moved is a move by
// another grant. That is charged, and its end ends the lease.
func TestRenewalsByAnotherGrant(t *testing.T) {
	withGrants(t, func(d *desk, p agents.Principal, grant func(string, time.Duration) func()) {
		grant("set lever max 1m", time.Hour)
		if kind := d.holdsFor(p, 10, 60); kind != "" {
			t.Fatal(kind)
		}
		revoke := grant("set lever max 5m 1/h", time.Hour)
		if kind := d.holdsFor(p, 10, 300); kind != "" {
			t.Fatal(kind)
		}
		if kind := d.holdsFor(p, 20, 300); kind != device.Busy {
			t.Errorf("its rate was not charged: %q", kind)
		}
		d.heldBy(t, p.ID, 10)
		revoke()
		d.heldBy(t, "", 0)
	})
}

// TestRenewalsAndRates: a rate that others used up does not end what is held, and limits each
// change.
func TestRenewalsAndRates(t *testing.T) {
	withGrants(t, func(d *desk, p agents.Principal, grant func(string, time.Duration) func()) {
		grant("set lever 0..50 max 1m 1/h", 3*time.Minute)
		if kind := d.holdsFor(p, 10, 60); kind != "" {
			t.Fatal(kind)
		}
		for range 4 {
			time.Sleep(40 * time.Second)
			if kind := d.holdsFor(p, 10, 60); kind != "" {
				t.Fatal(kind)
			}
		}
		for v, seconds := range map[float64]float64{20: 60, 60: 60, 10: 61} {
			if kind := d.holdsFor(p, v, seconds); kind != device.Busy && kind != device.Denied {
				t.Errorf("%v for %v s: %q", v, seconds, kind)
			}
		}
		time.Sleep(30 * time.Second) // the grant has ended
		if kind := d.holdsFor(p, 10, 20); kind != device.Denied {
			t.Errorf("%q", kind)
		}
		time.Sleep(time.Minute)
		d.heldBy(t, "", 0)
	})
}

// TestRefusedAboveALease: a move that the guard refuses, other than for the lease of an outranked
// agent, is neither charged nor journalled before.
func TestRefusedAboveALease(t *testing.T) {
	low := agents.Principal{ID: "rule:low"}
	withGuard(t, func(d *desk) {
		d.asks(low, 10, "")
		begun, long := len(d.book.asked), 3600.0
		if _, err := d.Node.Move(context.Background(), boss, agents.MoveRequest{Output: arm, Value: device.Number(20), For: &long}); kindOf(err) != device.Invalid {
			t.Error(err)
		}
		if len(d.book.asked) != begun {
			t.Error("it was written down")
		}
	})
}
