package elsewhere

import (
	"context"
	"errors"
	"slices"
	"testing"

	"agentsite/agents"
	"agentsite/agents/principal"
	"agentsite/device"
	"agentsite/node"
)

var beds = principal.Agent("llm", "beds")

// may is an Access where some principals may do everything, and others nothing.
type may struct {
	node.Access
	all []string
}

func (m may) CanSee(p agents.Principal, _ agents.Ask) bool { return slices.Contains(m.all, p.ID) }
func (m may) Version(agents.Principal) uint64              { return 1 }
func (may) PassedOn(string, string) bool                   { return false }
func (m may) Root(p agents.Principal) string               { return p.ID }
func (m may) AgentName(string) string                      { return "" }
func (m may) MayHold(who, _ string) bool                   { return slices.Contains(m.all, who) }
func (m may) May(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	if !m.CanSee(p, ask) {
		return agents.Limits{}, device.Faultf(device.Denied, "%s may not", p.ID)
	}
	return agents.Limits{}, nil
}
func (m may) MayRenew(p agents.Principal, ask agents.Ask) (agents.Limits, error) {
	return m.May(p, ask)
}
func (m may) Take(p agents.Principal, ask agents.Ask, _ bool) (agents.Limits, error) {
	return m.May(p, ask)
}

// book is a journal that names what it is told.
type book struct {
	node.Journal
	wrote []string
}

func (b *book) Replay(node.Asked) (*node.Outcome, error) { return nil, nil }
func (b *book) Deny(string, string, device.FaultKind)    {}
func (b *book) Add(a node.Asked, o node.Outcome)         { b.wrote = append(b.wrote, "add "+a.Tool+o.Fault) }
func (b *book) Begin(a node.Asked) (func(node.Outcome), *node.Outcome, error) {
	b.wrote = append(b.wrote, "begin "+a.Tool)
	return func(o node.Outcome) { b.wrote = append(b.wrote, "end "+o.Fault) }, nil, nil
}

// shed is another site, which answers every call.
type shed struct {
	agents.Site
	asked int
	fails error
	panic bool
}

func (*shed) Away(string) error { return nil }

func (s *shed) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	return &agents.Offer{Read: []string{lever}, Level: []string{lever}}, nil
}

func (s *shed) Move(context.Context, agents.Principal, agents.MoveRequest) (agents.Output, error) {
	if s.asked++; s.panic {
		panic("a defect")
	}
	return agents.Output{}, s.fails
}

func (s *shed) Read(_ context.Context, _ agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	s.asked++
	return agents.Readings{Readings: []agents.Reading{{Point: r.Points[0], Quality: device.Good}}}, nil
}

func (s *shed) History(context.Context, agents.Principal, agents.HistoryRequest) (agents.History, error) {
	s.asked++
	return agents.History{}, nil
}

func (s *shed) Why(context.Context, agents.Principal, agents.WhyRequest) (agents.Why, error) {
	s.asked++
	return agents.Why{}, nil
}

func (s *shed) Show(context.Context, agents.Principal, agents.ShowRequest) error {
	s.asked++
	return nil
}

func (s *shed) Capture(context.Context, agents.Principal, agents.CaptureRequest) (agents.Picture, error) {
	s.asked++
	return agents.Picture{}, nil
}

func (s *shed) Watch(
	ctx context.Context, _ agents.Principal, _ agents.WatchRequest, emit func(agents.Update) error,
) error {
	s.asked++
	if err := emit(agents.Update{}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

const lever = "shed/lever/arm"

// calls are all operations on a point, on the site as a hosted agent has it.
var calls = map[string]func(*Site, agents.Principal) error{
	"read": func(s *Site, p agents.Principal) error {
		_, err := s.Read(context.Background(), p, agents.ReadRequest{Points: []string{lever}})
		return err
	},
	"watch": func(s *Site, p agents.Principal) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		seen := errors.New("seen")
		err := s.Watch(ctx, p, agents.WatchRequest{Points: []string{lever}}, func(agents.Update) error { return seen })
		if err == seen {
			return nil
		}
		return err
	},
	"history": func(s *Site, p agents.Principal) error {
		_, err := s.History(context.Background(), p, agents.HistoryRequest{Point: lever})
		return err
	},
	"why": func(s *Site, p agents.Principal) error {
		_, err := s.Why(context.Background(), p, agents.WhyRequest{Point: lever})
		return err
	},
	"move": func(s *Site, p agents.Principal) error {
		_, err := s.Move(context.Background(), p, agents.MoveRequest{Output: lever, Value: device.Number(1)})
		return err
	},
	"renew": func(s *Site, p agents.Principal) error {
		r := agents.MoveRequest{Output: lever, Value: device.Number(1), Terms: agents.Terms{Held: true}}
		_, err := s.Move(context.Background(), p, r)
		return err
	},
	"release": func(s *Site, p agents.Principal) error {
		_, err := s.Move(context.Background(), p, agents.MoveRequest{Output: lever})
		return err
	},
	"show": func(s *Site, p agents.Principal) error {
		return s.Show(context.Background(), p, agents.ShowRequest{Display: lever, Text: "x"})
	},
	"capture": func(s *Site, p agents.Principal) error {
		_, err := s.Capture(context.Background(), p, agents.CaptureRequest{Camera: lever})
		return err
	},
	"ask": func(s *Site, p agents.Principal) error {
		_, end, err := s.Ask(context.Background(), p, "shed/tidy", nil, agents.Terms{}, false)
		if err == nil {
			s.of(p.ID).(*shed).asked++
			end(nil, nil)
		}
		return err
	},
}

func newSite(all ...string) (*Site, *shed, *book) {
	far, b := new(shed), new(book)
	n := node.New(node.Parts{
		Hub: node.NewHub(nil, nil, agents.PointURI), Journal: b, Access: may{all: all},
	})
	return New(n, "remote", func(id string) Others {
		if id != beds.ID {
			return nil
		}
		return far
	}), far, b
}

// TestPermissions: another site is asked by an agent that has other sites, if the agent and all agents
// together may ask it, and by nobody else.
func TestPermissions(t *testing.T) {
	for name, call := range calls {
		for _, tt := range []struct {
			who agents.Principal
			all []string
			may bool
		}{
			{beds, []string{beds.ID, "remote:shed"}, true},
			{beds, []string{beds.ID}, false},
			{beds, []string{"remote:shed"}, false},
			{beds, []string{beds.ID, "remote:barn"}, false},
			{principal.Agent("rule", "frost"), []string{"rule:frost", "remote:shed"}, false},
			{agents.Principal{}, []string{"", "remote:shed"}, false},
		} {
			s, far, _ := newSite(tt.all...)
			if err := call(s, tt.who); (err == nil) != tt.may || (far.asked > 0) != tt.may {
				t.Errorf("%s by %q of those that may, %q: %v, asked %d times", name, tt.who.ID, tt.all, err, far.asked)
			}
		}
	}
}

// TestNoOther: the node permits no call elsewhere that names no other principal, whose permission it needs.
func TestNoOther(t *testing.T) {
	s, _, b := newSite(beds.ID, "remote:shed")
	for _, c := range []node.Call{
		node.MoveOf(agents.MoveRequest{Output: lever, Value: device.Number(1)}),
		node.MoveOf(agents.MoveRequest{Output: lever}),
		{Ask: agents.Ask{Op: agents.OpAsk, Points: []string{"shed/tidy"}}},
		{Ask: agents.Ask{Op: agents.OpRead, Points: []string{lever}, Effect: agents.Reads}},
	} {
		if _, err := s.node.Begin(t.Context(), beds, &c); err == nil || device.AsFault(err).Kind != device.Denied {
			t.Errorf("%v: %v", c.Ask, err)
		}
	}
	if b.wrote != nil {
		t.Errorf("%q", b.wrote)
	}
}

// TestJournal: a move is in the journal before it is made, and its outcome after it, also of one that a
// defect ends. What goes to safe, or extends a lease, is there afterwards, and what only reads is not.
func TestJournal(t *testing.T) {
	wants := map[string][]string{
		"move": {"begin set_level", "end "}, "renew": {"add set_level"}, "release": {"add release_output"},
		"ask": {"add ask_agent"},
	}
	for name, call := range calls {
		s, _, b := newSite(beds.ID, "remote:shed")
		if err := call(s, beds); err != nil || !slices.Equal(b.wrote, wants[name]) {
			t.Errorf("%s: %v, %q", name, err, b.wrote)
		}
	}
	s, far, b := newSite(beds.ID, "remote:shed")
	far.fails = device.Faultf(device.Offline, "no answer")
	if err := calls["move"](s, beds); err == nil || !slices.Equal(b.wrote, []string{"begin set_level", "end offline"}) {
		t.Errorf("one that fails: %v, %q", err, b.wrote)
	}
	s, far, b = newSite(beds.ID, "remote:shed")
	far.panic = true
	func() {
		defer func() { recover() }()
		calls["move"](s, beds)
	}()
	if !slices.Equal(b.wrote, []string{"begin set_level", "end unknown_outcome"}) {
		t.Errorf("one that a defect ends: %q", b.wrote)
	}
}

// TestOffer: of another site an agent is offered what both permissions let it use.
func TestOffer(t *testing.T) {
	for _, all := range [][]string{{beds.ID, "remote:shed"}, {beds.ID}, {"remote:shed"}} {
		s, _, _ := newSite(all...)
		o, err := s.Offer(t.Context(), beds)
		if err != nil || slices.Contains(o.Read, lever) != (len(all) == 2) || slices.Contains(o.Level, lever) != (len(all) == 2) {
			t.Errorf("%q: %v, %+v", all, err, o)
		}
		if again, _ := s.Offer(t.Context(), beds); len(all) == 2 && again.Read == nil {
			t.Error("nothing is offered the second time")
		}
	}
}
