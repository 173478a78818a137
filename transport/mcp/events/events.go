package events

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/event"
	"agentsite/transport/rpc"
)

// Server answers the methods of the extension. Its methods are safe for concurrent use.
type Server struct {
	Source event.Source
	Hooks  *Webhooks // nil where nothing is sent
}

// List answers events/list.
func (s *Server) List(ctx context.Context, who agents.Principal) (out ListResult, err error) {
	types, err := s.Source.Types(ctx, who)
	if err != nil {
		return out, err
	}
	delivery := []string{pollMode, pushMode}
	if s.Hooks.on() {
		delivery = append(delivery, webhookMode)
	}
	out.Events = make([]Type, len(types))
	for i, t := range types {
		out.Events[i] = Type{t.Name, t.Description, delivery, rpc.RawJSON(t.Input), rpc.RawJSON(t.Payload)}
	}
	return out, nil
}

// Poll answers events/poll.
func (s *Server) Poll(ctx context.Context, who agents.Principal, a *Asked) (out PollResult, err error) {
	r, err := a.request()
	if err != nil {
		return out, err
	}
	page, err := s.Source.Poll(ctx, who, r)
	if err != nil {
		return out, err
	}
	out = PollResult{
		Events: make([]Occurrence, len(page.Events)), Cursor: orNull(page.Cursor), Truncated: page.Truncated,
		More: page.More, Next: page.Next.Milliseconds(),
	}
	for i, e := range page.Events {
		out.Events[i] = occurrence(e)
	}
	return out, nil
}
