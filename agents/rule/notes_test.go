package rule_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/agents"
	"agentsite/agents/rule"
	"agentsite/device"
)

// noted is a site with a display and an agent, which notes what a rule shows and asks.
type noted struct {
	agents.Site
	mu    sync.Mutex
	all   []string
	hangs bool // the display
	began time.Time
}

func (s *noted) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	return agents.PointList{Points: []agents.Point{{Point: "panel/text", Kind: device.KindText}}}, nil
}

func (s *noted) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	s.note(p, r.Display, r.Text)
	if s.hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *noted) note(p agents.Principal, words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, strings.Join(append([]string{time.Since(s.began).Truncate(time.Second).String(), p.ID}, words...), " "))
}

// runs runs a rule for a time, and returns what it showed and asked.
func (s *noted) runs(t *testing.T, k ruleKeys, length time.Duration) (all []string) {
	synctest.Test(t, func(t *testing.T) {
		s.all, s.began = nil, time.Now()
		r := rule.Kind(rule.World{
			Now: func() (time.Time, bool) { return time.Now(), true },
			Ask: func(_ context.Context, p agents.Principal, agent, text, key string) error {
				s.note(p, "asks", agent, text, key)
				return nil
			},
		}).New().(*rule.Rule)
		r.At, r.Every, r.Do = k.At, k.Every, k.Do
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		if err := r.Run(ctx, self, s); ctx.Err() == nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		all = s.all
	})
	return all
}

// TestNotes: texts and tasks are the rule's own calls, and what hangs or chatters holds nothing up.
func TestNotes(t *testing.T) {
	show := rule.Step{Show: map[string]string{"panel/text": "hello"}}
	ask := rule.Step{Ask: "gardener", Text: "look at the beds"}
	s := new(noted)
	for _, tt := range []struct {
		name   string
		rule   ruleKeys
		hangs  bool
		length time.Duration
		want   []string
	}{
		{"a text", ruleKeys{Every: time.Minute, Do: []rule.Step{show}}, false, 130 * time.Second, []string{"1m0s rule:frost panel/text hello", "2m0s rule:frost panel/text hello"}},
		{"after a wait", ruleKeys{Every: time.Minute, Do: []rule.Step{show, {Wait: 5 * time.Second}, show}}, false, 70 * time.Second, []string{"1m0s rule:frost panel/text hello", "1m5s rule:frost panel/text hello"}},
		{"a display that hangs", ruleKeys{Every: 15 * time.Second, Do: []rule.Step{show}}, true, 50 * time.Second, []string{"15s rule:frost panel/text hello", "45s rule:frost panel/text hello"}},
		{"a task, at most each minute", ruleKeys{Every: 25 * time.Second, Do: []rule.Step{ask}}, false, 2 * time.Minute, []string{"25s rule:frost asks gardener look at the beds ", "1m40s rule:frost asks gardener look at the beds "}},
	} {
		s.hangs = tt.hangs
		if got := s.runs(t, tt.rule, tt.length); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", tt.name, got, tt.want)
		}
	}
	m, err := (ruleKeys{At: "7:30", Do: []rule.Step{ask}}).rule().NewMachine(selfID, machinePoints)
	if err != nil {
		t.Fatal(err)
	}
	now := rule.Moment{Now: time.Second, Wall: time.Date(2026, 11, 23, 7, 29, 59, 0, time.UTC), Sure: true}
	for range 3 {
		m.Step(now)
		now.Now, now.Wall = now.Now+time.Second, now.Wall.Add(time.Second)
	}
	if all := m.Notes(); len(all) != 1 || all[0].Key != "2026-11-23T07:30/n0" || m.Notes() != nil {
		t.Errorf("at: makes %+v", all)
	}
	for _, wrong := range []ruleKeys{
		{On: "a/button", Do: []rule.Step{{Show: map[string]string{"a/lamp": "x"}}}},
		{On: "a/button", Do: []rule.Step{{Show: map[string]string{"a/none": "x"}}}},
		{On: "a/button", Do: []rule.Step{{Show: map[string]string{}}}},
		{On: "a/button", Do: []rule.Step{{Text: "x"}}},
		{On: "a/button", Do: []rule.Step{{Ask: "Gardener"}}},
		{On: "a/button", Do: []rule.Step{{Ask: "shed/tidy"}}},
		{On: "a/button", Do: []rule.Step{{Ask: "gardener", Text: "a\u001bb"}}},
		{On: "a/button", Do: []rule.Step{{Ask: "gardener", Text: strings.Repeat("x", 501)}}},
		{On: "a/button", Do: []rule.Step{{Ask: "gardener", For: time.Second}}},
		{On: "a/button", Toggle: true, Do: []rule.Step{ask}},
	} {
		if _, err := wrong.rule().NewMachine(selfID, machinePoints); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}

// TestNotesAfterBrokenWait: what was to be said when all had gone well is not said otherwise.
func TestNotesAfterBrokenWait(t *testing.T) {
	k := ruleKeys{On: "a/button", Do: slices.Concat(doHeater(time.Hour), []rule.Step{{Wait: 5 * time.Second}, {Ask: "gardener"}})}
	for script, want := range map[string]int{"wait 10s": 1, "take ann, wait 10s": 0, "refuse unsafe": 1} {
		s := newSim(t, k)
		for line := range strings.SplitSeq("nothing, press, "+script+", wait 10s", ",") {
			s.do(strings.TrimSpace(line))
		}
		if got := s.m.Notes(); len(got) != want {
			t.Errorf("%s: %+v", script, got)
		}
	}
}
