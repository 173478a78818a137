package mcp

import (
	"context"

	"agentsite/agents"
	"agentsite/node"
	"agentsite/transport/rpc"
)

// maxWatched bounds the resources of one subscription.
const maxWatched = 512

// listen serves subscriptions/listen: an acknowledgement, then notifications
// until the client leaves or the site ends (patterns/subscriptions).
func (s *Server) listen(ctx context.Context, r request, p *listenParams) (any, error) {
	if len(p.Notifications.URIs) > maxWatched {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "notifications: at most %d resources in one subscription", maxWatched)
	}
	if len(p.Notifications.TaskIDs) > 0 {
		if err := s.tasksFor(r); err != nil {
			return nil, err
		}
	}
	watching, cancel := context.WithCancel(ctx)
	var tasks taskWatches
	defer tasks.Wait()
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	follow := s.notify
	if r.meta.Values != nil {
		follow = s.watch
	}
	agreed := p.Notifications
	agreed.TaskIDs = s.knownTasks(watching, r, agreed.TaskIDs)
	begin := func() { s.watchTasks(watching, r, agreed.TaskIDs, &tasks) }
	if err := follow(watching, r, agreed, begin); watching.Err() == nil {
		return nil, err
	}
	out := s.completed()
	out.Meta.Subscription = r.ID
	return out, nil
}

// notify sends the notifications of the specification. It calls begin once it has
// acknowledged the subscription.
func (s *Server) notify(ctx context.Context, r request, agreed filter, begin func()) error {
	place, err := s.node.Hold(r.who, node.Subscriptions)
	if err != nil {
		return err
	}
	defer place.Leave()
	if agreed.URIs, err = s.known(ctx, r.who, agreed.URIs); err != nil {
		return err
	}
	which := agents.Change{Tools: agreed.Tools, Prompts: agreed.Prompts, Resources: agreed.Resources}
	return s.catalog.Notify(ctx, r.who, which, agreed.URIs, func(c agents.Change) error {
		if c == (agents.Change{}) {
			defer begin()
			return s.tell(r, acknowledged, subscriptionParams{Notifications: &agreed})
		}
		return s.changed(r, c)
	})
}

const acknowledged = "notifications/subscriptions/acknowledged"

// known keeps the resources that exist for p.
func (s *Server) known(ctx context.Context, p agents.Principal, uris []string) ([]string, error) {
	all, err := s.Library.Resources(ctx, p)
	if err != nil {
		return nil, err
	}
	exists := make(map[string]bool, len(all))
	for _, r := range all {
		exists[r.URI] = true
	}
	var known []string
	for _, u := range uris {
		if exists[u] {
			known = append(known, u)
			exists[u] = false // once is enough
		}
	}
	return known, nil
}

func (s *Server) changed(r request, c agents.Change) error {
	if c.URI != "" {
		return s.tell(r, "notifications/resources/updated", subscriptionParams{URI: c.URI})
	}
	for _, n := range []struct {
		happened bool
		method   string
	}{
		{c.Tools, "notifications/tools/list_changed"},
		{c.Prompts, "notifications/prompts/list_changed"},
		{c.Resources, "notifications/resources/list_changed"},
	} {
		if n.happened {
			if err := s.tell(r, n.method, subscriptionParams{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Server) tell(r request, method string, p subscriptionParams) error {
	p.Meta.Subscription = r.ID
	return r.Notify(method, p)
}
