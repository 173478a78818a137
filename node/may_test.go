package node

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"agentsite/agents"
	"agentsite/agents/tools"
	"agentsite/device"
)

// leaves is an Access of a test: the permissions of each principal, as "tool point", or "tool"
// alone for calls that name no point.
type leaves struct {
	may    map[string][]string
	roots  map[string]string
	agent  string // the name of whoever asks
	limits agents.Limits
	stands uint64
	mu     sync.Mutex // holds for taken
	taken  int
	former map[string]bool // owners
}

func (l *leaves) Owns(who string) bool { return !l.former[who] }

func (l *leaves) Peer(string) (agents.Principal, error) {
	return agents.Principal{}, device.Faultf(device.Denied, "unknown")
}

func (l *leaves) Bearer(token string) (agents.Principal, error) {
	if l.may["token:"+token] == nil {
		return agents.Principal{}, device.Faultf(device.Denied, "no token")
	}
	return agents.Principal{ID: "token:" + token}, nil
}

func (l *leaves) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if !l.CanSee(p, ask) {
		return agents.Limits{}, device.Faultf(device.Denied, "you lack %s %v", ask.Name(), ask.Points)
	}
	return l.limits, nil
}

func (l *leaves) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	limits, err := l.May(p, ask)
	if confirmed || !limits.Confirm {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.taken++
	}
	return limits, err
}

func (l *leaves) MayRenew(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	return l.May(p, ask)
}

func (l *leaves) CanSee(p agents.Principal, ask agents.Ask) bool {
	for _, point := range ask.Points {
		if !slices.Contains(l.may[p.ID], ask.Name()+" "+point) {
			return false
		}
	}
	return len(ask.Points) > 0 || slices.Contains(l.may[p.ID], ask.Name())
}

func (l *leaves) NameOf(who string) string { return "name of " + who }
func (l *leaves) AgentName(string) string  { return l.agent }

func (l *leaves) Widened(agents.Principal, agents.Ask) (token, may string, ok bool) {
	return "", "", false
}

func (l *leaves) MayHold(who, output string) bool {
	return slices.Contains(l.may[who], "set_level "+output)
}

func (l *leaves) Version(p agents.Principal) uint64 {
	if l.may[p.ID] == nil {
		return 0
	}
	return l.stands + 1
}

func (*leaves) PassedOn(string, string) bool { return false }
func (l *leaves) Root(p agents.Principal) string {
	if root, ok := l.roots[p.ID]; ok {
		return root
	}
	return p.ID
}

var shy = agents.Principal{ID: "token:shy"}

// seenDesk is a desk whose lever only shy may move.
func seenDesk() (*desk, *leaves) {
	d, l := newDesk(), &leaves{may: map[string][]string{"token:shy": {"set_level lever/arm", "set_level"}}}
	d.access = l
	return d, l
}

// TestAdmitted: the principal of a request does not outlive a permission or an ownership.
func TestAdmitted(t *testing.T) {
	d, l := seenDesk()
	p, err := d.Node.Bearer("shy", false)
	if err != nil || p != shy {
		t.Fatal(p, err)
	}
	delete(l.may, "token:shy")
	if _, err := d.Node.Move(t.Context(), p, agents.MoveRequest{Output: arm, Value: device.Number(1)}); device.AsFault(err).Kind != device.Denied {
		t.Errorf("after its permission ended: %v", err)
	}
	ann := agents.Principal{ID: "ann", Owner: true}
	before := d.Node.Owner(ann)
	l.former = map[string]bool{"ann": true}
	if before != nil || device.AsFault(d.Node.Owner(ann)).Kind != device.Denied {
		t.Errorf("an owner: %v, and a former one: %v", before, d.Node.Owner(ann))
	}
}

func TestWhoHasALeave(t *testing.T) {
	d, l := seenDesk()
	for bearer, want := range map[string]string{"secret": "token", "shy": "token:shy", "loud": ""} {
		if p, _ := d.Node.Bearer(bearer, true); p.ID != want || p.Owner {
			t.Errorf("%s is %+v", bearer, p)
		}
	}
	if says, _ := d.ask(shy, 1); says != "at 1" || l.taken != 1 {
		t.Error(says, l.taken)
	}
	_, hidden := d.Node.Read(t.Context(), shy, agents.ReadRequest{})
	if hidden == nil || hidden.Error() != "you lack read_points []" {
		t.Error(hidden)
	}
	d.ReplaceTools(shelf("hidden"))
	for tool, want := range map[string]string{"hidden": tools.ErrNotFound.Error(), "fly": tools.ErrNotFound.Error(), "capture_image": "you lack capture_image []"} {
		if _, err := d.Node.Call(t.Context(), shy, tools.Call{Tool: tool, Args: jsonArgs("{}")}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", tool, err, want)
		}
	}
	if o, _ := d.Offer(t.Context(), shy); !slices.Equal(o.Level, []string{arm}) || o.Read != nil || o.Release != nil || o.Stop {
		t.Errorf("%+v", o)
	}
	if _, err := d.Node.Move(t.Context(), bob, agents.MoveRequest{Output: arm, Value: device.Number(1)}); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	if d.refused["bob set_level denied"] != 1 || d.refused["token:shy fly invalid"] != 1 {
		t.Error(d.refused)
	}
	if o, _ := d.Offer(t.Context(), own); len(o.Read) != 3 || len(o.Release) != 1 || !o.Stop {
		t.Errorf("the owner sees %+v", o)
	}
}

// TestLeaveThatConfirms: an owner's word is asked for, and what waits for it is counted
// once it is made.
func TestLeaveThatConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		l.limits.Confirm = true
		for range 3 {
			if says, _ := d.ask(shy, 1); !strings.HasPrefix(says, "needs ") || l.taken != 0 {
				t.Fatal(says, l.taken)
			}
		}
		all, _ := d.Requests(own)
		if len(all) != 1 || d.Approve(own, all[0].Handle, true) != nil {
			t.Fatal(all)
		}
		d.ask(shy, 1)
		if l.taken != 1 || d.at != 1 {
			t.Error(l.taken, d.at)
		}
		d.ask(shy, 0) // and to safe without
		if d.at != 0 {
			t.Error("a return to safe waits")
		}
	})
}

// TestConfirmedReading: a read that an owner has to confirm fails if nobody can be asked, and
// leaves no request that waits for an owner.
func TestConfirmedReading(t *testing.T) {
	d, l := seenDesk()
	l.may["token:shy"] = []string{"read_points lever/a"}
	l.stands++
	r := agents.ReadRequest{Points: []string{"lever/a"}, Terms: agents.Terms{NoApproval: true}}
	if res, err := d.Read(t.Context(), shy, r); err != nil || len(res.Readings) != 1 {
		t.Error(res, err)
	}
	ask := agents.Ask{Op: agents.OpRead, Points: r.Points, Effect: agents.Reads}
	if err := d.May(shy, ask); err != nil {
		t.Error(err)
	}
	l.limits.Confirm = true
	if err := d.May(shy, ask); !errors.Is(err, errConfirm) {
		t.Error(err)
	}
	if res, err := d.Read(t.Context(), shy, r); !errors.Is(err, errConfirm) {
		t.Error(res, err)
	}
	if all, err := d.Requests(own); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	var needs *agents.ApprovalNeeded
	r.NoApproval = false
	if res, err := d.Read(t.Context(), shy, r); !errors.As(err, &needs) {
		t.Error(res, err)
	}
}

// TestRevokedMeanwhile: an output goes back if its caller's permission ended during the move.
func TestRevokedMeanwhile(t *testing.T) {
	d, l := seenDesk()
	d.during = func() { l.may = nil }
	_, err := d.Node.Move(t.Context(), shy, agents.MoveRequest{Output: arm, Value: device.Number(1)})
	if device.AsFault(err).Kind != device.Denied || d.at != 0 || !slices.Contains(d.events, "release") {
		t.Error(err, d.at, d.events)
	}
}

// TestFormerOwner: a key that is no longer an owner's keeps no running move, no watch and no
// session.
func TestFormerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		d.during = func() { l.former = map[string]bool{"did:key:ann": true} }
		ann := agents.Principal{ID: "did:key:ann", Owner: true}
		ended := make(chan error)
		go func() {
			ended <- d.Notify(t.Context(), ann, agents.Change{}, []string{"agentsite:///lever/a"}, func(agents.Change) error { return nil })
		}()
		synctest.Wait()
		d.Recheck()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatal("an owner's ends:", err)
		default:
		}
		move := func() error {
			_, err := d.Node.Move(t.Context(), ann, agents.MoveRequest{Output: arm, Value: device.Number(1)})
			return err
		}
		if err := move(); err == nil || device.AsFault(err).Kind != device.Denied || d.at != 0 || !slices.Contains(d.events, "release") {
			t.Error("what was under way stays:", err, d.at, d.events)
		}
		if err := move(); err == nil || device.AsFault(err).Kind != device.Denied {
			t.Error("it moves:", err)
		}
		d.Recheck()
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, errRevoked) {
				t.Error(err)
			}
		default:
			t.Fatal("it goes on watching")
		}
	})
}

// TestWatchEndsWithItsLeave: at once, and with the reason.
func TestWatchEndsWithItsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		l.may["token:shy"] = []string{"read_points lever/a"}
		if err := d.Notify(t.Context(), shy, agents.Change{}, []string{"agentsite:///lever/b"}, func(agents.Change) error { return nil }); device.AsFault(err).Kind != device.Denied {
			t.Error("it watches what it may not see:", err)
		}
		ended := make(chan error)
		go func() {
			ended <- d.Notify(t.Context(), shy, agents.Change{}, []string{"agentsite:///lever/a"}, func(agents.Change) error { return nil })
		}()
		synctest.Wait()
		d.Recheck()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatal("it ended for no reason:", err)
		default:
		}
		l.may = nil
		d.Recheck()
		if err := <-ended; !errors.Is(err, errRevoked) {
			t.Error(err)
		}
	})
}
