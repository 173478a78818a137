package tasks

import (
	"context"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/node/hosted"

	"github.com/go-json-experiment/json/jsontext"
)

// helper is the agent of the suite that every task.Host passes.
type helper struct{}

func (helper) Run(ctx context.Context, _ agents.Principal, _ agents.Site) error {
	<-ctx.Done()
	return nil
}
func (helper) Skills() []task.Skill { return tasktest.Helper.Skills }
func (helper) Work(ctx context.Context, _ agents.Principal, _ agents.Site, w task.Work) (jsontext.Value, error) {
	return tasktest.Work(ctx, w)
}

func TestHost(t *testing.T) {
	tasktest.Run(t, func(t *testing.T) map[tasktest.Who]tasktest.As {
		d := newDesk()
		d.refused[string(tasktest.Eve)] = true
		m := New(Options{Folder: t.TempDir(), Node: d, Site: newHouse(d), Now: func() (time.Time, bool) { return time.Now(), true }, Workers: func() []hosted.Worker {
			return []hosted.Worker{{Worker: helper{}, Name: tasktest.Helper.Name, Self: agents.Principal{ID: "test:helper"}}}
		}})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		all := make(map[tasktest.Who]tasktest.As)
		for _, who := range tasktest.Everybody {
			all[who] = tasktest.As{Host: m, Self: agents.Principal{ID: string(who), Owner: who == tasktest.Olga}}
		}
		return all
	})
}
