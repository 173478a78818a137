package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/identity"
)

// TestAnswer: a key whose permission says so answers a call that waits, once; not one that it asks for itself, directly
// or by an agent. Owners' other acts, wishes of programs and tokens are not its own.
func TestAnswer(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		in.confirming()
		key := func(words string) agents.Principal {
			id := identity.New().ID()
			if _, err := in.store.AddGrant(in.grantTo(id, words)); err != nil {
				t.Fatal(err)
			}
			p, err := in.store.Peer(id.String())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		phone, other, asker := key("read *, set lever, use approve 2/h"), key("read *, set *"), key("set lever")
		waits := func(p agents.Principal, via ...string) string {
			t.Helper()
			r := agents.MoveRequest{Output: arm, Value: device.Number(10)}
			r.Terms.Via = via
			_, err := in.Node.Move(context.Background(), p, r)
			var needs *agents.ApprovalNeeded
			if !errors.As(err, &needs) {
				t.Fatal(err)
			}
			return needs.State
		}
		is := func(what string, err error, want device.FaultKind) {
			t.Helper()
			if kind := kindOf(err); kind != want {
				t.Errorf("%s: %v, wanted %s", what, err, want)
			}
		}
		handle, mine := waits(asker), waits(phone)
		all, err := in.Answerable(phone)
		if err != nil || len(all) != 1 || all[0].Handle != handle {
			t.Errorf("it is shown %+v, %v", all, err)
		}
		for _, p := range []agents.Principal{other, asker, in.signIn(t, "claude", "read *, use approve")} {
			is("a key or a token without the permission", in.Answer(p, handle, true), device.Denied)
			if all, err := in.Answerable(p); err == nil {
				t.Errorf("%s is shown %+v", p.ID, all)
			}
		}
		is("an owner's act", in.Approve(phone, handle, true), device.Denied)
		is("its own call", in.Answer(phone, mine, true), device.Denied)
		is("no call", in.Answer(phone, "X", true), device.Invalid)
		is("a third yes in an hour", in.Answer(phone, handle, true), device.Busy)
		is("a no is not counted", in.Answer(phone, handle, false), "")
		is("an answer again", in.Answer(phone, handle, false), device.Invalid)

		passed := key("use approve")
		passed.Account = phone.Account
		is("a key that the permission was passed on to", in.Answer(passed, handle, true), device.Denied)

		second := key("use approve")
		handle = waits(asker, second.ID, "task/1")
		is("a call for it by an agent", in.Answer(second, handle, true), device.Denied)
		third := key("use approve")
		is("a yes", in.Answer(third, handle, true), "")
		is("a yes to confirm", in.Answer(key("use approve confirm"), mine, true), device.Denied)
		in.calls(in.signIn(t, "gpt", "read *"), "set_level", `{"output":"lever/arm","value":10,"for_seconds":60}`)
		wishes, err := in.Wishes(own)
		if err != nil || len(wishes) != 1 {
			t.Fatal(wishes, err)
		}
		is("a program's wish", in.Answer(third, wishes[0].Handle, false), device.Denied)
	})
}

// TestAnswerOfOne: the key of a phone does not answer for a key to which it passed a permission on, nor for an agent
// that such a key asked, and passes on to nobody that it answers. A yes ends with the permission to say it.
func TestAnswerOfOne(t *testing.T) {
	withPrograms(t, func(in *programsIn) {
		in.confirming()
		add := func(g *access.Grant, err error) agents.Principal {
			t.Helper()
			if err == nil {
				_, err = in.store.AddGrant(g.Bytes())
			}
			if err != nil {
				t.Fatal(err)
			}
			p, err := in.store.Peer(g.Audience().String())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		phone, second, asker, aide := identity.New(), identity.New(), identity.New(), identity.New()
		given, err := access.ParseGrant(in.grantTo(phone.ID(), "set lever, use approve"))
		first := add(given, err)
		until := time.Now().Add(time.Hour).Unix()
		may, err := access.ParsePermissions("set lever")
		if err != nil {
			t.Fatal(err)
		}
		known, err := access.ParseGrant(in.grantTo(second.ID(), "read *"))
		add(known, err)
		passed, err := given.Delegate(phone, access.Block{Audience: second.ID(), Permissions: may, Until: until})
		other := add(passed, err)
		its, err := access.ParseGrant(in.grantTo(asker.ID(), "set lever"))
		third := add(its, err)
		move := func(p agents.Principal, state string, via ...string) error {
			r := agents.MoveRequest{Output: arm, Value: device.Number(10)}
			r.Terms.Via, r.Terms.Approval = via, state
			_, err := in.Node.Move(context.Background(), p, r)
			return err
		}
		waits := func(p agents.Principal, via ...string) string {
			t.Helper()
			needs, ok := errors.AsType[*agents.ApprovalNeeded](move(p, "", via...))
			if !ok {
				t.Fatal("it does not wait")
			}
			return needs.State
		}
		for _, handle := range []string{waits(other), waits(third, other.ID)} {
			if err := in.Answer(first, handle, true); kindOf(err) != device.Denied {
				t.Errorf("a call by its own permission: %v", err)
			}
		}
		if all, err := in.Answerable(first); err != nil || len(all) != 0 {
			t.Errorf("it is shown %+v, %v", all, err)
		}
		words, err := access.ParsePermissions("use approve")
		if err != nil {
			t.Fatal(err)
		}
		lent, err := given.Delegate(phone, access.Block{Audience: aide.ID(), Permissions: words, Until: until})
		add(lent, err)
		reads, err := access.ParseGrant(in.grantTo(aide.ID(), "read *"))
		helper := add(reads, err) // which is a key of the owner's, too
		handle := waits(third)
		if err := in.Answer(helper, waits(first), true); kindOf(err) != device.Denied {
			t.Errorf("a key to which the phone passed it on: %v", err)
		}
		if err := in.Answer(first, handle, true); err != nil {
			t.Fatal(err)
		}
		if err := in.store.Revoke(access.Revocation{Key: phone.ID()}); err != nil {
			t.Fatal(err)
		}
		if err := move(third, handle); kindOf(err) != device.Expired {
			t.Errorf("a yes of a phone that was revoked: %v", err)
		}
		if err := in.store.AddOwner(access.Owner{ID: second.ID()}); err != nil {
			t.Fatal(err)
		}
		anna, err := in.store.Peer(second.ID().String())
		handle = waits(third)
		if err := errors.Join(err, in.Approve(anna, handle, true), in.store.RemoveOwner(second.ID())); err != nil {
			t.Fatal(err)
		}
		if err := move(third, handle); kindOf(err) != device.Expired {
			t.Errorf("a yes of an owner who was removed: %v", err)
		}
	})
}
