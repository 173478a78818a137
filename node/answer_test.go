package node

import (
	"context"
	"errors"
	"testing"

	"agentsite/agents"
	"agentsite/device"
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
