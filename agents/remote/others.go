package remote

import (
	"context"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// Others are agents elsewhere that are on no site of ours. They take tasks, and have no points.
type Others interface {
	task.Host
	// Connect finds out whether the agents can be asked. It is called when the connection is wanted,
	// and after a back-off when it failed.
	Connect(ctx context.Context) error
}

// WithoutPoints returns agents elsewhere as a site.
func WithoutPoints(o Others) Site { return others{o} }

type others struct{ host Others }

var errNoPoints = device.Faultf(device.Invalid, "it has no points: it is an agent, and takes tasks")

func (o others) Tasks() task.Host { return o.host }

// Watch implements agents.Site. It is the connection, which lasts once it stands: a call that fails
// says so itself.
func (o others) Watch(ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	if len(r.Points) > 0 {
		return errNoPoints
	}
	if err := o.host.Connect(ctx); err != nil {
		return err
	}
	if err := emit(agents.Update{}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (others) Offer(context.Context, agents.Principal) (*agents.Offer, error) {
	return new(agents.Offer), nil
}

func (others) Points(context.Context, agents.Principal, agents.SiteRequest) (agents.PointList, error) {
	return agents.PointList{}, nil
}

func (others) Read(_ context.Context, _ agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	if len(r.Points) > 0 {
		err = errNoPoints
	}
	return out, err
}

func (others) History(context.Context, agents.Principal, agents.HistoryRequest) (agents.History, error) {
	return agents.History{}, errNoPoints
}

func (others) Why(context.Context, agents.Principal, agents.WhyRequest) (agents.Why, error) {
	return agents.Why{}, errNoPoints
}

func (others) Move(context.Context, agents.Principal, agents.MoveRequest) (agents.Output, error) {
	return agents.Output{}, errNoPoints
}

func (others) Stop(context.Context, agents.Principal, agents.SiteRequest) (agents.Answers[agents.Stopped], error) {
	return agents.Answers[agents.Stopped]{}, errNoPoints
}

func (others) Show(context.Context, agents.Principal, agents.ShowRequest) error { return errNoPoints }

func (others) Capture(context.Context, agents.Principal, agents.CaptureRequest) (agents.Picture, error) {
	return agents.Picture{}, errNoPoints
}

func (others) Status(context.Context, agents.Principal, agents.SiteRequest) (agents.Answers[agents.Status], error) {
	return agents.Answers[agents.Status]{}, errNoPoints
}
