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

// site is the agents.Site of a task's agent. Each call that acts is a step of the task, made in the
// agent's own name and by its own permission, and names the asker.
type site struct {
	agents.Site
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
	step := task.Step{Does: fmt.Sprintf("return %s to safe", r.Output), Op: agents.OpMove, Output: r.Output, Value: r.Value}
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

// Try is that of the node, where there is one. It is no step.
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
				w.m.Site.Move(ctx, w.self, agents.MoveRequest{Output: output, Terms: w.Through(agents.Terms{Held: true})}) // leases end by themselves
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
	_, err := w.step(ctx, task.Step{Does: fmt.Sprintf("show %q on %s", r.Text, r.Display), Op: agents.OpShow}, true, func(_, approval string) (any, error) {
		r.Approval = approval
		ctx, cancel := detached(ctx)
		defer cancel()
		return nil, s.Site.Show(ctx, w.self, r)
	})
	return err
}

// Capture implements agents.Site.
func (s *site) Capture(ctx context.Context, _ agents.Principal, r agents.CaptureRequest) (picture agents.Picture, err error) {
	w := s.work
	r.Terms = w.Through(r.Terms)
	_, err = w.step(ctx, task.Step{Does: "take a picture with " + r.Camera, Op: agents.OpCapture}, true, func(_, approval string) (any, error) {
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
func (s *site) Stop(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (res agents.Answers[agents.Stopped], err error) {
	w := s.work
	r.Terms = w.Through(r.Terms)
	res, err = s.Site.Stop(ctx, w.self, r)
	var needed *agents.ApprovalNeeded
	waits, asked := errors.As(err, &needed), true
	_, noted := w.step(ctx, task.Step{Does: "emergency stop", Op: agents.OpStop}, waits, func(_, approval string) (any, error) {
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

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
