package node

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"agentsite/agents"
	"agentsite/device"
)

// leaves is an Access of a test: what each principal may, by the tool's name and a
// point's, "tool" alone for calls that name none.
type leaves struct {
	may    map[string][]string
	roots  map[string]string
	limits agents.Limits
	stands uint64
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
	if !l.Sees(p, ask) {
		return agents.Limits{}, device.Faultf(device.Denied, "you lack %s %v", ask.Tool, ask.Points)
	}
	return l.limits, nil
}

func (l *leaves) Take(p agents.Principal, ask agents.Ask, confirmed bool) (agents.Limits, error) {
	limits, err := l.May(p, ask)
	if confirmed || !limits.Confirm {
		l.taken++
	}
	return limits, err
}

func (l *leaves) Sees(p agents.Principal, ask agents.Ask) bool {
	for _, point := range ask.Points {
		if !slices.Contains(l.may[p.ID], ask.Tool+" "+point) {
			return false
		}
	}
	return len(ask.Points) > 0 || slices.Contains(l.may[p.ID], ask.Tool)
}

func (l *leaves) Holds(who, output string) bool {
	return slices.Contains(l.may[who], "move "+output)
}

func (l *leaves) Standing(p agents.Principal) uint64 {
	if l.may[p.ID] == nil {
		return 0
	}
	return l.stands + 1
}

func (l *leaves) Root(p agents.Principal) string {
	if root, ok := l.roots[p.ID]; ok {
		return root
	}
	return p.ID
}

var shy = agents.Principal{ID: "token:shy"}

// seenDesk is a desk whose lever only shy may move.
func seenDesk() (*desk, *leaves) {
	d, l := newDesk(), &leaves{may: map[string][]string{"token:shy": {"move lever/arm", "move"}}}
	d.Obey(l)
	return d, l
}

func TestWhoHasALeave(t *testing.T) {
	d, l := seenDesk()
	for bearer, want := range map[string]string{"secret": "token", "shy": "token:shy", "loud": ""} {
		if p, _ := d.Who(Evidence{Bearer: bearer, Local: "loopback"}); p.ID != want || p.Owner {
			t.Errorf("%s is %+v", bearer, p)
		}
	}
	if says, _ := d.ask(shy, "1"); says != "1 by token:shy" && l.taken != 1 {
		t.Error(says, l.taken)
	}
	_, hidden := d.Node.Call(t.Context(), shy, agents.Call{Tool: "look", Args: jsonArgs("{}")})
	_, none := d.Node.Call(t.Context(), shy, agents.Call{Tool: "fly", Args: jsonArgs("{}")})
	if hidden == nil || none == nil || hidden.Error() != "you lack look []" || none.Error() != "you lack fly []" {
		t.Error(hidden, none)
	}
	if tools, _ := d.Node.Tools(shy); len(tools) != 1 || tools[0].Name != "move" {
		t.Error(tools)
	}
	if _, err := d.Node.Call(t.Context(), bob, agents.Call{Tool: "move", Args: jsonArgs(`{"to":1}`)}); device.AsFault(err).Kind != device.Denied {
		t.Error(err)
	}
	if d.refused["bob move denied"] != 1 || d.refused["token:shy fly denied"] != 1 {
		t.Error(d.refused)
	}
	if tools, _ := d.Node.Tools(own); len(tools) != 2 {
		t.Error("the owner sees", tools)
	}
}

// TestLeaveThatConfirms: an owner's word is asked for, and what waits for it is counted
// once it is made.
func TestLeaveThatConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		l.limits.Confirm = true
		for range 3 {
			c := agents.Call{Tool: "move", Args: jsonArgs(`{"to":1}`)}
			if res, err := d.Node.Call(t.Context(), shy, c); err != nil || res.NeedInput == nil || l.taken != 0 {
				t.Fatal(res, err, l.taken)
			}
		}
		all, _ := d.Requests(own)
		if len(all) != 1 || d.Approve(own, all[0].Handle, true) != nil {
			t.Fatal(all)
		}
		d.ask(shy, "1")
		if l.taken != 1 || d.at != 1 {
			t.Error(l.taken, d.at)
		}
		d.ask(shy, "0") // and to safe without
		if d.at != 0 {
			t.Error("a return to safe waits")
		}
	})
}

// TestConfirmedReading: what an owner has to confirm cannot be read as a resource, which
// asks nobody.
func TestConfirmedReading(t *testing.T) {
	d, l := seenDesk()
	d.Host(library{during{d.lever, nil}})
	l.may["token:shy"] = []string{"read u:a"}
	if all, err := d.Read(t.Context(), shy, "u:a"); err != nil || len(all) != 1 {
		t.Error(all, err)
	}
	ask := agents.Ask{Tool: "read", Points: []string{"u:a"}, Effect: agents.Reads}
	if err := d.May(shy, ask); err != nil {
		t.Error(err)
	}
	l.limits.Confirm = true
	if err := d.May(shy, ask); !errors.Is(err, errConfirm) {
		t.Error(err)
	}
	if all, err := d.Read(t.Context(), shy, "u:a"); !errors.Is(err, errConfirm) {
		t.Error(all, err)
	}
}

// library is an agent with a resource.
type library struct{ during }

func (l library) View(func(agents.Ask) bool) (agents.Agent, error) { return l, nil }
func (l library) Resources() []agents.Resource                     { return nil }
func (l library) Templates() []agents.Template                     { return nil }
func (l library) ReadResource(context.Context, agents.Principal, string) ([]agents.ResourceContent, error) {
	return make([]agents.ResourceContent, 1), nil
}

// TestRevokedMeanwhile: what was being moved when its mover's leave ended goes back.
func TestRevokedMeanwhile(t *testing.T) {
	d, l := seenDesk()
	d.Host(during{d.lever, func() { l.may = nil }})
	_, err := d.Node.Call(t.Context(), shy, agents.Call{Tool: "move", Args: jsonArgs(`{"to":1}`)})
	if device.AsFault(err).Kind != device.Denied || d.at != 0 || !slices.Contains(d.events, "undo") {
		t.Error(err, d.at, d.events)
	}
}

// TestFormerOwner: a key that is no owner's any more has nothing by what it was when it came:
// no move that is under way, no watch and no session that lasts.
func TestFormerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		remove := func() { l.former = map[string]bool{"did:key:ann": true} }
		d.Host(during{d.lever, remove})
		ann := agents.Principal{ID: "did:key:ann", Owner: true}
		ended := make(chan error)
		go func() {
			ended <- d.Watch(t.Context(), ann, agents.Change{}, []string{"u:a"}, func(agents.Change) error { return nil })
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
			_, err := d.Node.Call(t.Context(), ann, agents.Call{Tool: "move", Args: jsonArgs(`{"to":1}`)})
			return err
		}
		if err := move(); err == nil || device.AsFault(err).Kind != device.Denied || d.at != 0 || !slices.Contains(d.events, "undo") {
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

// during does something while a move is made.
type during struct {
	*lever
	do func()
}

func (m during) View(func(agents.Ask) bool) (agents.Agent, error) { return m, nil }
func (m during) Reads(uri string) agents.Ask {
	return agents.Ask{Tool: "read", Points: []string{uri}}
}

func (m during) Plan(p agents.Principal, c agents.Call) (*agents.Plan, error) {
	plan, err := m.lever.Plan(p, c)
	made := plan.Make
	plan.Make = func(ctx context.Context, l agents.Limits) (agents.Result, error) {
		m.do()
		return made(ctx, l)
	}
	return plan, err
}

// TestWatchEndsWithItsLeave: at once, and with the reason.
func TestWatchEndsWithItsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := seenDesk()
		d.Host(during{d.lever, nil})
		l.may["token:shy"] = []string{"read u:a"}
		if err := d.Watch(t.Context(), shy, agents.Change{}, []string{"u:b"}, func(agents.Change) error { return nil }); device.AsFault(err).Kind != device.Denied {
			t.Error("it watches what it may not see:", err)
		}
		ended := make(chan error)
		go func() {
			ended <- d.Watch(t.Context(), shy, agents.Change{}, []string{"u:a"}, func(agents.Change) error { return nil })
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
