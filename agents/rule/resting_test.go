package rule_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"agentsite/agents"
	"agentsite/agents/rule"
)

// TestResting: rules that wait have no goroutines of their own, and end with their context.
func TestResting(t *testing.T) {
	inHouse(t, func(h *house) {
		const rules = 20
		ctx, cancel := context.WithCancel(h.t.Context())
		var ends []func()
		before := runtime.NumGoroutine()
		var all sync.WaitGroup
		for i := range rules {
			all.Add(1)
			r := rule.Kind(h.world()).New().(*rule.Rule)
			r.When, r.Hold = frost.When, frost.Hold
			r.Begin(ctx, agents.Principal{ID: fmt.Sprint("rule:r", i)}, h.node, func(err error) {
				if err != context.Canceled {
					h.t.Errorf("it ended with %v", err)
				}
				all.Done()
			})
			ends = append(ends, r.End)
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 2 {
			h.t.Errorf("%d rules that wait have %d goroutines", rules, n)
		}
		cancel()
		for _, end := range ends {
			end()
		}
		all.Wait()
	})
}

// TestDefinedWhileBegun: a rule may be defined, as each trial does, while it begins. Under -race.
func TestDefinedWhileBegun(t *testing.T) {
	inHouse(t, func(h *house) {
		ctx, cancel := context.WithCancel(h.t.Context())
		cancel()
		r := rule.Kind(h.world()).New().(*rule.Rule)
		r.When, r.Hold = frost.When, frost.Hold
		var all sync.WaitGroup
		all.Add(1)
		all.Go(func() {
			if d, err := r.Define(); err != nil || len(d.Moves) != 1 {
				h.t.Errorf("%+v, %v", d, err)
			}
		})
		r.Begin(ctx, agents.Principal{ID: "rule:r"}, h.node, func(error) { all.Done() })
		all.Wait()
	})
}
