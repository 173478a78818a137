package hosted

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/node"
	"agentsite/node/access"
	"agentsite/node/config"
)

// worker ends each time with the next of some endings.
type worker struct {
	endings chan func() error
}

func (w *worker) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	select {
	case end := <-w.endings:
		return end()
	case <-ctx.Done():
		return nil
	}
}

// TestDefect: a panic ends its agent alone, which is run again; it is told, and stays to be seen. What
// the site offers anew has a failed agent run at once.
func TestDefect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, notes := &worker{make(chan func() error, 1)}, &notes{failed: map[string]int{}, running: map[string]bool{}}
		var defects []string
		m := New(Options{
			Kinds: func(*config.Site) []agent.Kind {
				return []agent.Kind{{Name: "worker", New: func() agent.Agent { return w }}, {Name: "probe", New: func() agent.Agent { return &probe{notes: notes} }}}
			},
			Permit: func(map[string][]access.Permission) error { return nil }, Tell: func(map[string]node.Hosted) {}, Keep: func([]string) error { return nil },
			OnDefect: func(who string, err error) { defects = append(defects, who) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		if err := m.Apply(parse(t, "agents: { w: { kind: worker }, other: { kind: probe } }")); err != nil {
			t.Fatal(err)
		}
		state := func(want agent.State, last bool) {
			t.Helper()
			synctest.Wait()
			all := m.List(t.Context())
			if all[0].State != want || (all[0].LastError != "") != last || all[1].State != agent.Running || all[1].LastError != "" {
				t.Errorf("%+v; want %s", all, want)
			}
		}
		state(agent.Running, false)
		for i := range 10 {
			w.endings <- func() error { panic("a defect") }
			state(agent.Failed, true)
			time.Sleep(min(retry<<i, retryMax))
			state(agent.Running, true)
		}
		if len(defects) != 10 || defects[0] != "worker:w" {
			t.Errorf("told of %v", defects)
		}
		w.endings <- func() error { panic("once more") }
		state(agent.Failed, true)
		m.Retry()
		time.Sleep(retry)
		state(agent.Running, true)
		if got := notes.take(); got != "begin probe:other " {
			t.Errorf("the other one: %s", got)
		}
		cancel()
		<-ended
	})
}

// TestFirstFailure: an agent is listed while it fails for the first time.
func TestFirstFailure(t *testing.T) {
	for range 20_000 {
		e := new(entry)
		go e.fail("away")
		for n, said := 1, ""; said == ""; n++ {
			if n%100 == 0 { // there may be one processor
				runtime.Gosched()
			}
			a := e.describe(context.Background(), false)
			if said = a.Says; said != a.LastError && said != "" {
				t.Fatalf("%+v", a)
			}
		}
	}
}
