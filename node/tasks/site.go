package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
)

// site is the agents.Site of a task's agent. Each call is made in the agent's own name and by its own
// permission. A call that acts is a step of the task, and names the asker.
type site struct {
	Site agents.Site
	work *work
}

// Through implements task.Talk.
func (w *work) Through(t agents.Terms) agents.Terms {
	t.Via, t.Behalf.Asker, t.Behalf.Task = slices.Clone(w.j.asked.Via), w.j.asker(), w.j.asked.ID
	return t
}

// detached is the context of a call of the site: once a step is written down it is made, although
// its task is canceled meanwhile.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
}

// Move implements agents.Site. A release is made whether the disk stores it or not.
func (s *site) Move(ctx context.Context, _ agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	w := s.work
	step := task.Step{Op: agents.OpMove, Output: r.Output, Value: r.Value}
	step.Does = fmt.Sprintf("return %s to safe", r.Output)
	releases := r.Value.IsZero()
	if !releases {
		step.Does = fmt.Sprintf("set %s to %v", r.Output, r.Value)
		if r.For != nil {
			step.For = seconds(*r.For)
			step.Does += fmt.Sprintf(" for %v", device.FormatDuration(step.For))
		}
	}
	r.Terms = w.Through(r.Terms)
	_, err = w.step(ctx, step, !releases, func(key, approval string) (any, error) {
		if r.Approval = approval; !releases {
			r.Key = &key
		}
		ctx, cancel := detached(ctx)
		defer cancel()
		out, err = s.Site.Move(ctx, w.self, r)
		return out, err
	})
	return out, err
}

// Try returns why the node would refuse a move; nil where only the call can tell. It is not a step.
func (s *site) Try(ctx context.Context, _ agents.Principal, r agents.MoveRequest) error {
	node, ok := s.Site.(interface {
		Try(context.Context, agents.Principal, agents.MoveRequest) error
	})
	if !ok || siteOf(r.Output) != "" {
		return nil
	}
	r.Terms = s.work.Through(r.Terms)
	return node.Try(ctx, s.work.self, r)
}

// siteOf returns the other site that an output is at; "" for one of this site.
func siteOf(output string) string {
	if site, point, _ := strings.Cut(output, "/"); strings.Contains(point, "/") {
		return site
	}
	return ""
}

// release returns the outputs to safe that the task moved and its agent still holds. A site that
// does not answer delays no other one.
func (w *work) release() {
	w.m.mu.Lock()
	outputs := make(map[string][]string) // by site
	for _, output := range w.j.moved {
		outputs[siteOf(output)] = append(outputs[siteOf(output)], output)
	}
	w.j.moved = nil
	w.m.mu.Unlock()
	var sites sync.WaitGroup
	for _, of := range outputs {
		sites.Go(func() {
			for _, output := range of {
				ctx, cancel := detached(w.ctx)
				r := agents.MoveRequest{Output: output, Terms: w.Through(agents.Terms{Held: true})}
				w.m.Site.Move(ctx, w.self, r) // if that fails, the lease ends by itself
				cancel()
			}
		})
	}
	sites.Wait()
}

// Show implements agents.Site.
func (s *site) Show(ctx context.Context, _ agents.Principal, r agents.ShowRequest) error {
	w := s.work
	r.Terms = w.Through(r.Terms)
	step := task.Step{Does: fmt.Sprintf("show %q on %s", r.Text, r.Display), Op: agents.OpShow}
	_, err := w.step(ctx, step, true, func(_, approval string) (any, error) {
		r.Approval = approval
		ctx, cancel := detached(ctx)
		defer cancel()
		return nil, s.Site.Show(ctx, w.self, r)
	})
	return err
}

// Capture implements agents.Site.
func (s *site) Capture(
	ctx context.Context, _ agents.Principal, r agents.CaptureRequest,
) (picture agents.Picture, err error) {
	w := s.work
	r.Terms = w.Through(r.Terms)
	step := task.Step{Does: "take a picture with " + r.Camera, Op: agents.OpCapture}
	_, err = w.step(ctx, step, true, func(_, approval string) (any, error) {
		r.Approval = approval
		ctx, cancel := detached(ctx)
		defer cancel()
		picture, err = s.Site.Capture(ctx, w.self, r)
		return picture, err
	})
	return picture, err
}

// Stop implements agents.Site. It waits for no disk, and is a step afterwards, unless an owner has to
// approve it.
func (s *site) Stop(
	ctx context.Context, _ agents.Principal, r agents.SiteRequest,
) (res agents.Answers[agents.Stopped], err error) {
	w := s.work
	r.Terms = w.Through(r.Terms)
	res, err = s.Site.Stop(ctx, w.self, r)
	var needed *agents.ApprovalNeeded
	waits, asked := errors.As(err, &needed), true
	step := task.Step{Does: "emergency stop", Op: agents.OpStop}
	_, noted := w.step(ctx, step, waits, func(_, approval string) (any, error) {
		if !asked {
			r.Approval = approval
			res, err = s.Site.Stop(ctx, w.self, r)
		}
		asked = false
		return nil, err
	})
	if waits {
		err = noted
	}
	return res, err
}

// The calls that only read are not steps.

// Offer implements agents.Site.
func (s *site) Offer(ctx context.Context, _ agents.Principal) (*agents.Offer, error) {
	return s.Site.Offer(ctx, s.work.self)
}

// Points implements agents.Site.
func (s *site) Points(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	return s.Site.Points(ctx, s.work.self, r)
}

// Read implements agents.Site.
func (s *site) Read(ctx context.Context, _ agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	return s.Site.Read(ctx, s.work.self, r)
}

// Watch implements agents.Site.
func (s *site) Watch(
	ctx context.Context, _ agents.Principal, r agents.WatchRequest, emit func(agents.Update) error,
) error {
	return s.Site.Watch(ctx, s.work.self, r, emit)
}

// History implements agents.Site.
func (s *site) History(ctx context.Context, _ agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	return s.Site.History(ctx, s.work.self, r)
}

// Why implements agents.Site.
func (s *site) Why(ctx context.Context, _ agents.Principal, r agents.WhyRequest) (agents.Why, error) {
	return s.Site.Why(ctx, s.work.self, r)
}

// Status implements agents.Site.
func (s *site) Status(
	ctx context.Context, _ agents.Principal, r agents.SiteRequest,
) (agents.Answers[agents.Status], error) {
	return s.Site.Status(ctx, s.work.self, r)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
