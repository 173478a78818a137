package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
)

// TestAsk: a task begins for a caller with the permission to ask, after an owner's approval if
// demanded. It is charged and journalled once.
func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		access := &leaves{may: map[string][]string{"ann": {"ask_agent beds"}}}
		d.access = access
		begun := 0
		ask := func(p agents.Principal, agent string, check error, terms agents.Terms) error {
			end, err := d.Ask(p, agent, map[string]string{"agent": agent}, terms, check)
			if err != nil {
				return err
			}
			begun++
			end(map[string]string{"task": "x"}, nil)
			return nil
		}
		wrong := device.Faultf(device.Invalid, "that makes no sense")
		if err := ask(ann, "beds", nil, agents.Terms{}); err != nil || begun != 1 || access.taken != 1 {
			t.Errorf("%v: begun %d, taken %d", err, begun, access.taken)
		}
		if a := d.added[len(d.added)-1]; a.Who != "ann" || a.Tool != "ask_agent" || string(a.Args) != `{"agent":"beds"}` {
			t.Errorf("%+v", a)
		}
		if err := ask(ann, "beds", wrong, agents.Terms{}); !errors.Is(err, wrong) {
			t.Error(err)
		}
		if err := ask(ann, "flush", wrong, agents.Terms{}); kindOf(err) != device.Denied {
			t.Errorf("what is wrong is told to others: %v", err)
		}
		if err := ask(bob, "beds", nil, agents.Terms{}); kindOf(err) != device.Denied {
			t.Error(err)
		}
		for p, may := range map[agents.Principal]bool{ann: true, bob: false, {Kind: principal.Local, ID: "local", Owner: true}: true} {
			if err := d.MayAsk(p, "beds"); (err == nil) != may {
				t.Errorf("%s: %v", p.ID, err)
			}
		}
		if err := d.Owner(ann); kindOf(err) != device.Denied {
			t.Error(err)
		}
		if begun != 1 || access.taken != 1 {
			t.Errorf("begun %d, taken %d", begun, access.taken)
		}

		// With an owner's yes.
		access.limits.Confirm = true
		var needed *agents.ApprovalNeeded
		if err := ask(ann, "beds", nil, agents.Terms{}); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		for _, p := range []agents.Principal{bob, ann} {
			done := make(chan error, 1)
			go func() { done <- d.Decided(context.Background(), p, needed.State) }()
			synctest.Wait()
			if waits := len(done) == 0; waits != (p == ann) {
				t.Errorf("%s waits: %t", p.ID, waits)
			}
			if p == ann {
				if err := d.Approve(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}, needed.State, true); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := ask(ann, "beds", nil, agents.Terms{Approval: needed.State}); err != nil || begun != 2 {
			t.Errorf("%v: begun %d", err, begun)
		}

		// Nobody answers, or the caller goes.
		if err := ask(ann, "beds", nil, agents.Terms{}); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		began := time.Now()
		if err := d.Decided(t.Context(), ann, needed.State); err != nil || time.Since(began) != approveWithin {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := ask(ann, "beds", nil, agents.Terms{}); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errBroken)
		if err := d.Decided(ctx, ann, needed.State); err != errBroken {
			t.Error(err)
		}
		if all, err := d.Requests(agents.Principal{Kind: principal.Local, ID: "local", Owner: true}); err != nil || len(all) > 0 {
			t.Errorf("an owner is asked for what nobody waits for: %+v %v", all, err)
		}
	})
}

// TestOnRecheck: the hub tells when permissions were added or have ended.
func TestOnRecheck(t *testing.T) {
	d, told := newDesk(), 0
	defer d.hub.On(agents.Change{Permissions: true}, func() { told++ })()
	d.Recheck()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// TestApprovalOfTask: an owner is told for whose task an agent asks. An approval for one asker's
// task is not valid for another's, by the same agent with the same arguments.
func TestApprovalOfTask(t *testing.T) {
	for _, read := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk()
			d.confirming()
			ask := func(handle string, via ...string) (needed *agents.ApprovalNeeded, err error) {
				terms := agents.Terms{Via: via, Approval: handle}
				if read {
					reads := agents.Ask{Op: agents.OpRead, Points: []string{arm}, Effect: agents.Reads}
					c := Call{who: ann, Ask: reads, Terms: terms, Args: none}
					d.Node.enter(&c)
					err = d.Node.approved(&c)
				} else {
					_, err = d.Node.Move(t.Context(), ann, agents.MoveRequest{Output: arm, Value: device.Number(5), Terms: terms})
				}
				if errors.As(err, &needed) {
					err = nil
				}
				return needed, err
			}
			one, err := ask("", "carl", "task/1")
			if one == nil {
				t.Fatal(err)
			}
			if all, err := d.Requests(own); err != nil || len(all) != 1 || !slices.Equal(all[0].Via, []string{"carl", "task/1"}) {
				t.Fatalf("%+v %v", all, err)
			}
			if err := d.Approve(own, one.State, true); err != nil {
				t.Fatal(err)
			}
			if other, err := ask("", "eve", "task/2"); other == nil || other.State == one.State {
				t.Errorf("another task: %v %v", other, err)
			}
			if _, err := ask(one.State, "eve", "task/2"); err == nil || device.AsFault(err).Kind != device.Denied {
				t.Errorf("another task, by the handle: %v", err)
			}
			if needed, err := ask("", "carl", "task/1"); needed != nil || err != nil {
				t.Errorf("the task: %v %v", needed, err)
			}
		})
	}
}

// TestApprovalWait: an owner chooses how long a call waits; a yes lasts two minutes all the same.
func TestApprovalWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.requests.wait = New(Parts{Hub: newHub(), ApprovalWait: 6 * time.Hour}).requests.wait
		access := &leaves{may: map[string][]string{"ann": {"ask_agent beds"}}}
		access.limits.Confirm = true
		d.access = access
		own := agents.Principal{Kind: principal.Local, ID: "local", Owner: true}
		ask := func(handle string) error {
			end, err := d.Ask(ann, "beds", nil, agents.Terms{Approval: handle}, nil)
			if err == nil {
				end(nil, nil)
			}
			return err
		}
		for _, tt := range []struct {
			wait, after time.Duration // for the owner, and then for the caller
			want        device.FaultKind
		}{
			{6*time.Hour - time.Second, approveWithin - time.Second, ""}, {time.Hour, approveWithin, device.Expired},
			{6 * time.Hour, 0, device.Expired},
		} {
			var needed *agents.ApprovalNeeded
			if err := ask(""); !errors.As(err, &needed) {
				t.Fatal(err)
			}
			time.Sleep(tt.wait)
			if err := d.Approve(own, needed.State, true); (err == nil) != (tt.wait < 6*time.Hour) {
				t.Errorf("after %v: %v", tt.wait, err)
			}
			time.Sleep(tt.after)
			if err := ask(needed.State); err == nil && tt.want != "" || err != nil && kindOf(err) != tt.want {
				t.Errorf("%v, and then %v: %v", tt.wait, tt.after, err)
			}
		}
	})
}

// TestApprovalNarrowed: a call whose permission ends while it waits for an owner waits no more, and cannot be
// approved.
func TestApprovalNarrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		d.requests.wait = 24 * time.Hour
		l := &leaves{may: map[string][]string{"ann": {"set_level lever/arm", "set_level"}}}
		d.access = movesConfirmed{l}
		_, err := d.Node.Move(t.Context(), ann, agents.MoveRequest{Output: arm, Value: device.Number(5)})
		var needed *agents.ApprovalNeeded
		if !errors.As(err, &needed) {
			t.Fatal(err)
		}
		decided := make(chan error, 1)
		go func() { decided <- d.Decided(t.Context(), ann, needed.State) }()
		synctest.Wait()
		l.may = nil
		d.Recheck()
		synctest.Wait()
		if all, err := d.Requests(own); err != nil || len(all) != 0 || len(decided) != 1 {
			t.Errorf("%+v %v, told %d", all, err, len(decided))
		}
		if err := d.Approve(own, needed.State, true); kindOf(err) != device.Invalid {
			t.Error(err)
		}
	})
}

// TestApprovedLength: a move that an owner approved holds its output no longer than the owner was told, although its
// limits allow more meanwhile.
func TestApprovedLength(t *testing.T) {
	d := newDesk()
	d.confirming()
	long := 600.0
	for _, tt := range []struct {
		spare, later time.Duration
		asked        *float64
		want         time.Duration
	}{
		{20 * time.Second, time.Hour, &long, 20 * time.Second}, {20 * time.Second, time.Hour, nil, 20 * time.Second},
		{time.Hour, time.Minute, &long, time.Minute}, {0, 0, &long, 600 * time.Second}, {0, 0, nil, 0},
	} {
		move := func() error {
			d.at = 0
			_, err := d.Node.Move(t.Context(), ann, agents.MoveRequest{Output: arm, Value: device.Number(5), For: tt.asked})
			return err
		}
		var needed *agents.ApprovalNeeded
		d.spare = tt.spare
		if err := move(); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		d.spare = tt.later
		if err := move(); !errors.As(err, &needed) {
			t.Fatal(err)
		}
		if err := d.Approve(own, needed.State, true); err != nil {
			t.Fatal(err)
		}
		if err := move(); err != nil || d.length != tt.want && min(d.length, tt.later) != tt.want {
			t.Errorf("%+v: %v, %v", tt, d.length, err)
		}
	}
}
