package access

import (
	"testing"

	"agentsite/agents"
	"agentsite/node/identity"
)

func TestHosted(t *testing.T) {
	s := new(shelf)
	b := s.open(t, identity.ID{})
	ended := 0
	b.OnEnd = func() { ended++ }
	p := agents.Principal{ID: "rule:frost"}
	set := func(permissions string) {
		t.Helper()
		all := map[string][]Permission{}
		if permissions != "" {
			all[p.ID] = words(t, permissions)
		}
		if err := b.SetHosted(all); err != nil {
			t.Fatal(err)
		}
	}
	may := func(want bool) {
		t.Helper()
		if _, err := b.Take(p, setFan(), false); (err == nil) != want {
			t.Errorf("it may: %v", err)
		}
	}
	holds := func(want bool, ends int) {
		t.Helper()
		if b.MayHold(p.ID, setFan().Points[0]) != want || ended != ends {
			t.Errorf("it holds: %v, after %d ends", !want, ended)
		}
	}
	may(false)
	if b.Version(p) != 0 {
		t.Error("somebody without a permission stands")
	}
	set("set fan/on 2/h, read *")
	may(true)
	holds(true, 0)
	version := b.Version(p)
	if version == 0 || b.Root(p) != p.ID {
		t.Errorf("version %d, root %s", version, b.Root(p))
	}
	if _, err := b.Take(agents.Principal{ID: "rule:other"}, setFan(), false); err == nil {
		t.Error("another agent has the permission too")
	}

	set("set fan/on 2/h, read *") // the same: nothing ends, and the rate goes on
	holds(true, 0)
	may(true)
	may(false)
	set("set fan/on, read *")
	holds(false, 1)
	if b.Version(p) == version {
		t.Error("the version does not change")
	}
	may(true)
	holds(true, 1)
	if !b.CanSee(p, readFan()) {
		t.Error("it does not see what it may read")
	}
	set("")
	holds(false, 2)
	may(false)
	if b.CanSee(p, readFan()) || len(s.book) != 0 {
		t.Errorf("%d bytes are kept of the configuration", len(s.book))
	}

	for _, reserved := range []string{"token:ci", "did:key:z6Mk", "local", "local-agent", "token", "", "ann", "rule", "rule:", "rule:a:b", "did:wba"} {
		if err := b.SetHosted(map[string][]Permission{reserved: words(t, "read *")}); err == nil {
			t.Errorf("an agent may be called %s", reserved)
		}
	}
}

// TestNeedsPermission: at the end of a permission, OnEnd's caller asks MayHold about every
// holder. Only keys, tokens and hosted agents lose what they hold.
func TestNeedsPermission(t *testing.T) {
	b := new(shelf).open(t, identity.ID{})
	for holder, stays := range map[string]bool{"": true, "local": true, "local-agent": true, "token": true, "rule:frost": false, "token:ci": false, identity.New().ID().String(): false} {
		if needsPermission(holder) == stays || b.MayHold(holder, "fan/on") != stays {
			t.Errorf("%q holds an output without a permission: %v", holder, !stays)
		}
	}
}
