package hosting

import (
	"context"

	"agentsite/agents"
)

// What hosted agents ask goes by way of here, and not to the node.

func (s *site) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	return s.here.Offer(ctx, p)
}

func (s *site) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	return s.here.Points(ctx, p, r)
}

func (s *site) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	return s.here.Read(ctx, p, r)
}

func (s *site) Watch(
	ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	return s.here.Watch(ctx, p, r, emit)
}

func (s *site) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	return s.here.Why(ctx, p, r)
}

func (s *site) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return s.here.Move(ctx, p, r)
}
