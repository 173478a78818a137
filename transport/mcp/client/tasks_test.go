package client_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/agents/task/tasktest"
	"agentsite/agents/tools"
	"agentsite/node"
	"agentsite/transport/mcp"
	"agentsite/transport/mcp/client"
	"agentsite/transport/rpc"
)

// TestTasks checks that a remote site's tasks are as those of the site, in both encodings.
func TestTasks(t *testing.T) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		t.Run(codec.ContentType(), func(t *testing.T) {
			tasktest.Run(t, func(t *testing.T) map[tasktest.Who]tasktest.As {
				h, all := tasktest.New(t), make(map[tasktest.Who]tasktest.As)
				for _, who := range tasktest.Everybody {
					c := dial(t, h.SeenBy(agents.Principal{ID: string(who)}), codec)
					all[who] = tasktest.As{Host: c.Tasks()}
				}
				return all
			})
		})
	}
}

// dial returns a client of a site with the tasks, over a stream.
func dial(t *testing.T, tasks task.Host, codec rpc.Codec) *client.Client {
	ending, end := context.WithCancel(context.Background())
	n := node.New(node.Parts{Hub: node.NewHub(nil, nil, agents.PointURI), Token: "secret"})
	catalog := tools.New(n, n)
	catalog.Tasks = tasks
	s := &rpc.Stream{
		Dispatcher: rpc.NewDispatcher(mcp.New(ending, n, catalog, mcp.Implementation{Name: "test", Version: "1"}, "").Methods()),
		Sender:     rpc.From(node.LocalAgent), Terms: rpc.Terms{Codec: codec},
	}
	here, there := net.Pipe()
	served, read := make(chan struct{}), make(chan struct{})
	go func() { defer close(served); s.Serve(ending, there) }()
	far := rpc.NewStreamClient(here, codec)
	go func() { defer close(read); far.Run() }()
	t.Cleanup(func() {
		far.Close()
		end()
		<-served
		<-read
	})
	return client.New(far, "test", "1")
}

// approving is a host of which an owner has to approve each task.
type approving struct{ task.Host }

func (h approving) Ask(ctx context.Context, p agents.Principal, r task.Request) (task.Task, error) {
	if r.Approval != "HANDLE" {
		return task.Task{}, &agents.ApprovalNeeded{Says: "an owner has to approve it", State: "HANDLE"}
	}
	return h.Host.Ask(ctx, p, r)
}

// TestTaskApproval: a request that an owner has to approve first is repeated after that, and is one
// task.
func TestTaskApproval(t *testing.T) {
	for _, codec := range []rpc.Codec{rpc.JSON, rpc.CBOR} {
		h := tasktest.New(t)
		c := dial(t, approving{h.SeenBy(agents.Principal{ID: string(tasktest.Ann)})}, codec).Tasks()
		r := task.Request{Agent: tasktest.Helper.Name, Skill: "wait"}
		_, err := c.Ask(t.Context(), agents.Principal{}, r)
		needs, ok := errors.AsType[*agents.ApprovalNeeded](err)
		if !ok || needs.Says != "an owner has to approve it" {
			t.Fatal(err)
		}
		r.Approval = needs.State
		if made, err := c.Ask(t.Context(), agents.Principal{}, r); err != nil || made.ID == "" {
			t.Errorf("%+v, %v", made, err)
		}
		if all, err := c.List(t.Context(), agents.Principal{}); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v", all, err)
		}
	}
}
