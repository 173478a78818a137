package site

import (
	"context"

	"agentsite/agents/event"
	"agentsite/transport/mcp/events"

	"golang.org/x/sync/errgroup"
)

// newEvents returns the methods of events over a source, and what is sent of them by webhook; nil for no source.
func (s *site) newEvents(ctx context.Context, group *errgroup.Group, source event.Source) *events.Server {
	if source == nil {
		return nil
	}
	return &events.Server{Source: source, Hooks: events.NewWebhooks(events.HookOptions{
		Source: source, Node: s.node, Hosts: s.listen.PushHosts, Read: s.Folder.Hooks, Write: s.Folder.WriteHooks,
		Now: s.access.Now, Ending: ctx, Go: func(do func()) { group.Go(func() error { do(); return nil }) },
	})}
}
