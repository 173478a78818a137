package remote

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/task"
)

var _ agents.Site = (*member)(nil)

// unopened stands for a site that could not be opened.
type unopened struct {
	task.Host // nil: none is asked before Connect
	err       error
}

// Connect implements Others.
func (u unopened) Connect(context.Context) error { return u.err }

// The methods of agents.Site that are the site's.

func (m *member) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	return m.site.Offer(ctx, p)
}

func (m *member) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	return m.site.Points(ctx, p, r)
}

func (m *member) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	return m.site.Read(ctx, p, r)
}

func (m *member) History(ctx context.Context, p agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	return m.site.History(ctx, p, r)
}

func (m *member) Why(ctx context.Context, p agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	return m.site.Why(ctx, p, r)
}

func (m *member) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	return m.site.Move(ctx, p, r)
}

func (m *member) Stop(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Stopped], error) {
	return m.site.Stop(ctx, p, r)
}

func (m *member) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	return m.site.Show(ctx, p, r)
}

func (m *member) Capture(ctx context.Context, p agents.Principal, r agents.CaptureRequest) (agents.Picture, error) {
	return m.site.Capture(ctx, p, r)
}

func (m *member) Status(
	ctx context.Context, p agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Status], error) {
	return m.site.Status(ctx, p, r)
}
