package site

import (
	"context"

	"agentsite/agents/event"
	"agentsite/node/state"
	"agentsite/transport/mcp/events"

	"golang.org/x/sync/errgroup"
)

// newEvents returns the methods of events over a source, and what is sent of them by webhook; nil for no source.
func (s *site) newEvents(ctx context.Context, group *errgroup.Group, source event.Source) *events.Server {
	if source == nil {
		return nil
	}
	return &events.Server{Source: source, Hooks: events.NewWebhooks(events.HookOptions{
		Source: source, Node: s.node, Hosts: s.listen.PushHosts,
		Read:  func() ([]byte, error) { return s.Folder.Read(state.HooksFile) },
		Write: func(text []byte) error { return state.WriteAtomic(s.Folder.Path(state.HooksFile), text, 0o600) },
		Now:   s.access.Now, Ending: ctx, Go: func(do func()) { group.Go(func() error { do(); return nil }) },
	})}
}
