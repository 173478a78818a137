package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"agentsite/agents"
	"agentsite/agents/agent"
	"agentsite/agents/task"
	"agentsite/device"
)

// elsewhere is agents elsewhere that can be asked, or not.
type elsewhere struct {
	task.Host
	err error
}

func (e elsewhere) Connect(context.Context) error { return e.err }

// TestWithoutPoints: the connection stands while it is wanted, once the agents can be asked; there
// are no points.
func TestWithoutPoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		none := func(agents.Update) error { t.Error("it is connected"); return nil }
		if err := WithoutPoints(elsewhere{err: away}).Watch(t.Context(), agents.Principal{}, agents.WatchRequest{}, none); err != away {
			t.Error(err)
		}
		s := WithoutPoints(elsewhere{})
		if err := s.Watch(t.Context(), agents.Principal{}, agents.WatchRequest{Points: []string{"a/b"}}, none); err == nil {
			t.Error("a point is watched")
		}
		ctx, end := context.WithCancel(t.Context())
		ended, told := make(chan error, 1), 0
		go func() {
			ended <- s.Watch(ctx, agents.Principal{}, agents.WatchRequest{}, func(agents.Update) error { told++; return nil })
		}()
		synctest.Wait()
		if told != 1 || len(ended) != 0 {
			t.Error(told, len(ended))
		}
		end()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		all, err := s.Points(t.Context(), agents.Principal{}, agents.SiteRequest{})
		if _, moved := s.Move(t.Context(), agents.Principal{}, agents.MoveRequest{Output: "a/b"}); len(all.Points) > 0 || err != nil || moved == nil {
			t.Error(all, err, moved)
		}
	})
}

// TestUnopened: a site that cannot be opened refuses the calls that are made although nothing connects
// to it, those that move nothing away from safe.
func TestUnopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSites(func(agent.Link) (Site, string, error) { return nil, "", device.Faultf(device.Invalid, "no such key") })
		s.Configure([]agent.Link{{Agent: "rule:x", Site: "shed"}})
		v := s.Of("rule:x")
		if err := v.Away("shed"); err == nil {
			t.Error("it answers")
		}
		if all, err := v.Read(t.Context(), agents.Principal{}, agents.ReadRequest{}); err == nil && len(all.Missed) != 1 {
			t.Errorf("%+v", all)
		}
		if all, err := v.Status(t.Context(), agents.Principal{}, agents.SiteRequest{}); err == nil && len(all.Missed) != 1 {
			t.Errorf("%+v", all)
		}
		if all, err := v.Stop(t.Context(), agents.Principal{}, agents.SiteRequest{}); err == nil && len(all.Missed) != 1 {
			t.Errorf("%+v", all)
		}
	})
}
