package hosted

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
)

// probe is an agent that notes what becomes of it.
type probe struct {
	Text string `json:"text,omitempty"`
	Fail int    `json:"fail,omitempty"` // how often it fails before it works
	Slow string `json:"slow,omitempty"` // it ends so much later than it is told to

	notes *notes
}

type notes struct {
	mu      sync.Mutex
	all     []string
	failed  map[string]int
	running map[string]bool // by principal
	twice   bool            // two of one name were at work together
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *notes) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := strings.Join(n.all, ", ")
	n.all = nil
	return all
}

func (p *probe) Run(ctx context.Context, self agents.Principal, _ agents.Site) error {
	n := p.notes
	n.mu.Lock()
	if n.failed[self.ID] < p.Fail {
		n.failed[self.ID]++
		n.mu.Unlock()
		return errors.New("not yet")
	}
	n.twice = n.twice || n.running[self.ID]
	n.running[self.ID] = true
	n.mu.Unlock()
	n.add("begin " + self.ID + " " + p.Text)
	<-ctx.Done()
	if slow, _ := time.ParseDuration(p.Slow); slow > 0 {
		time.Sleep(slow)
	}
	n.mu.Lock()
	delete(n.running, self.ID)
	n.mu.Unlock()
	end := "end "
	if context.Cause(ctx) == agent.ErrRemoved {
		end = "removed "
	}
	n.add(end + self.ID + " " + p.Text)
	return nil
}

type rig struct {
	*Manager
	notes     *notes
	permitted map[string][]access.Permission
}

func newRig() *rig {
	r := &rig{notes: &notes{failed: map[string]int{}, running: map[string]bool{}}}
	kinds := []agent.Kind{{Name: "probe", New: func() agent.Agent { return &probe{notes: r.notes} }}}
	r.Manager = New(Options{
		Kinds:  func(*config.Site) []agent.Kind { return kinds },
		Permit: func(all map[string][]access.Permission) error { r.permitted = all; return nil },
		Tell:   func(map[string]node.Hosted) {},
		Keep:   func([]string) error { return nil },
	})
	return r
}

func parse(t *testing.T, section string) *config.Site {
	t.Helper()
	cfg, err := config.Parse("a.yaml", []byte("site: { name: a }\n"+section), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		ctx, cancel := context.WithCancel(t.Context())
		apply := func(section, want string) {
			t.Helper()
			if err := r.Apply(parse(t, section)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := r.notes.take(); got != want {
				t.Errorf("%s: %q; want %q", section, got, want)
			}
		}
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		apply("agents: { a: { kind: probe, text: one, may: 'read *, set lamp/light max 5m' } }", "begin probe:a one")
		if len(r.permitted["probe:a"]) != 2 {
			t.Errorf("permitted: %v", r.permitted)
		}
		apply("# moved\nagents:\n  a: { may: 'read *, set lamp/light max 5m', kind: probe, text: one }", "")
		apply("agents: { a: { kind: probe, text: two } }", "end probe:a one, begin probe:a two")
		if len(r.permitted) != 0 {
			t.Errorf("permitted: %v", r.permitted)
		}
		apply("agents:", "removed probe:a two")
		apply("agents: { a: { kind: probe } }", "begin probe:a ")
		apply("devices:", "removed probe:a ")

		// A failing agent is run again, and ever later.
		began := time.Now()
		apply("agents: { c: { kind: probe, fail: 4 } }", "")
		for r.notes.take() == "" {
			time.Sleep(time.Second / 2)
		}
		if took := time.Since(began); took < 15*time.Second || took > 16*time.Second {
			t.Errorf("four failures took %v", took)
		}
		cancel()
		<-ended
		if got := r.notes.take(); got != "end probe:c " {
			t.Errorf("at the end: %q", got)
		}
	})
}

// TestSlowEnd changes agents that take their time to end: never are two of one name at work,
// the newest configuration holds in the end, and the end of the site waits no longer than it
// says.
func TestSlowEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); r.Run(ctx) }()
		for _, text := range []string{"one", "two", "one", "three"} {
			if err := r.Apply(parse(t, "agents: { a: { kind: probe, slow: 20s, text: "+text+" } }")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.notes.take(); !strings.HasSuffix(got, "begin probe:a three") || r.notes.twice {
			t.Errorf("%q, two at a time: %v", got, r.notes.twice)
		}
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took != endTimeout {
			t.Errorf("the end took %v", took)
		}
		time.Sleep(time.Minute) // for what is left behind
	})
}

func TestCheck(t *testing.T) {
	kinds := newRig().Kinds
	many := make([]string, 33) // parts that are well-formed each
	for i := range many {
		many[i] = "read d" + strconv.Itoa(i)
	}
	for _, tt := range []struct{ section, line, says string }{
		{"agents: { a: { kind: probe, may: 'read *' } }", "", ""},
		{"agents:\n  a: { kind: prob }", "a.yaml:3:14", "probe"},
		{"agents:\n  a: { kind: probe, may: 'set everything on fire' }", "a.yaml:3:26", "may"},
		{"agents:\n  a: { kind: probe, may: '" + strings.Join(many, ", ") + "' }", "a.yaml:3:26", "may"},
		{"agents:\n  a: { kind: probe, txet: x }", "a.yaml:3:21", "text"},
		{"agents:\n  a: { kind: probe, fail: x }", "a.yaml:3:27", "fail"},
	} {
		err := Check(parse(t, tt.section), kinds)
		switch {
		case tt.line == "":
			if err != nil {
				t.Errorf("%s: %v", tt.section, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), tt.line) || !strings.Contains(err.Error(), tt.says):
			t.Errorf("%s: %v; want %s, about %s", tt.section, err, tt.line, tt.says)
		}
	}
	r := newRig()
	if err := r.Apply(parse(t, "agents: { a: { kind: none } }")); err == nil || r.permitted != nil {
		t.Errorf("a mistake is applied: %v, %v", err, r.permitted)
	}
}
