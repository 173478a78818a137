package mcp

import (
	"context"
	"maps"

	"agentsite/node"
	"agentsite/transport/mcp/events"
	"agentsite/transport/rpc"
)

// The extension io.modelcontextprotocol/events, as package events has it.

type (
	eventsAsked struct {
		Params
		events.Asked
	}
	eventsSubscribed struct {
		Params
		events.Subscribed
	}

	eventsListed struct {
		Result
		events.ListResult
	}
	eventsPolled struct {
		Result
		events.PollResult
	}
	eventsSubscription struct {
		Result
		events.SubscribeResult
	}

	// eventsNotified are the parameters of a notification that is not of an event.
	eventsNotified struct {
		Meta subscriptionMeta `json:"_meta"`
		events.Notified
	}
	eventNotified struct {
		events.Occurrence
		Meta eventMeta `json:"_meta"`
	}
	eventMeta struct {
		Subscription rpc.ID `json:"io.modelcontextprotocol/subscriptionId"`
		Clock        string `json:"agentsite/clock,omitzero"`
	}
)

func (s *Server) eventMethods() map[string]rpc.Method {
	all := map[string]rpc.Method{
		"events/list":   method(s, s.eventsList),
		"events/poll":   method(s, s.eventsPoll),
		"events/stream": method(s, s.eventsStream),
	}
	if s.Events.Hooks != nil {
		maps.Copy(all, map[string]rpc.Method{
			"events/subscribe":   method(s, s.eventsSubscribe),
			"events/unsubscribe": method(s, s.eventsUnsubscribe),
		})
	}
	return all
}

// declared reports whether the client declares the extension, as of its final text.
func (r request) declared() bool { return r.meta.Capabilities.Extensions.Events != nil }

// refused returns err as the client is told it.
func (r request) refused(err error) error {
	if err == nil {
		return nil
	}
	if e := events.Refuse(err, r.declared()); e != nil {
		return e
	}
	return err
}

func (s *Server) eventsList(ctx context.Context, r request, p *listParams) (any, error) {
	if err := p.whole(); err != nil {
		return nil, err
	}
	out, err := s.Events.List(ctx, r.who)
	return eventsListed{s.completed(), out}, r.refused(err)
}

func (s *Server) eventsPoll(ctx context.Context, r request, p *eventsAsked) (any, error) {
	out, err := s.Events.Poll(ctx, r.who, &p.Asked)
	return eventsPolled{s.completed(), out}, r.refused(err)
}

func (s *Server) eventsSubscribe(ctx context.Context, r request, p *eventsSubscribed) (any, error) {
	out, err := s.Events.Hooks.Subscribe(ctx, r.who, &p.Subscribed, r.declared())
	return eventsSubscription{s.completed(), out}, r.refused(err)
}

func (s *Server) eventsUnsubscribe(ctx context.Context, r request, p *eventsSubscribed) (any, error) {
	return s.completed(), r.refused(s.Events.Hooks.Unsubscribe(ctx, r.who, &p.Subscribed, r.declared()))
}

// eventsStream serves events/stream like listen: until the client leaves or the site ends.
func (s *Server) eventsStream(ctx context.Context, r request, p *eventsAsked) (any, error) {
	place, err := s.node.Hold(r.who, node.Subscriptions)
	if err != nil {
		return nil, r.refused(err)
	}
	defer place.Leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	err = s.Events.Stream(ctx, r.who, &p.Asked, r.declared(), func(n events.Notified) error {
		if n.Event != nil {
			return r.Notify(n.Method, eventNotified{*n.Event, eventMeta{r.ID, n.Event.Meta.Clock}})
		}
		return r.Notify(n.Method, eventsNotified{subscriptionMeta{Subscription: r.ID}, n})
	})
	out := s.completed()
	out.Meta.Subscription = r.ID
	return out, r.refused(err)
}
