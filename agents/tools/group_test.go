package tools_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/agents"
	"agentsite/agents/group"
	"agentsite/device"
)

// asGroup returns a site as the only one of a group, under the addresses that it has for
// itself.
func asGroup(t *testing.T, s agents.Site) (one agents.Site, end func()) {
	t.Helper()
	g := group.New(func() []group.Member { return []group.Member{{Name: "here", Site: s}} })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	g.Settle(ctx)
	return ungrouped{g}, func() {
		cancel()
		running.Wait()
	}
}

// ungrouped takes the name of the site off the answers of a group.
type ungrouped struct{ *group.Group }

const prefix = "here/"

func (u ungrouped) Offer(ctx context.Context, p agents.Principal) (*agents.Offer, error) {
	o, err := u.Group.Offer(ctx, p)
	plain := *o
	plain.Sites = nil
	strip(reflect.ValueOf(&plain).Elem())
	return &plain, err
}

func (u ungrouped) Points(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.PointList, error) {
	return stripped(u.Group.Points(ctx, p, r))
}

func (u ungrouped) Read(ctx context.Context, p agents.Principal, r agents.ReadRequest) (agents.Readings, error) {
	for i := range r.Points {
		r.Points[i] = prefix + r.Points[i]
	}
	return stripped(u.Group.Read(ctx, p, r))
}

func (u ungrouped) History(ctx context.Context, p agents.Principal, r agents.HistoryRequest) (agents.History, error) {
	r.Point = prefix + r.Point
	return stripped(u.Group.History(ctx, p, r))
}

func (u ungrouped) Move(ctx context.Context, p agents.Principal, r agents.MoveRequest) (agents.Output, error) {
	r.Output = prefix + r.Output
	return stripped(u.Group.Move(ctx, p, r))
}

func (u ungrouped) Stop(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Stopped], error) {
	all, err := stripped(u.Group.Stop(ctx, p, r))
	for i := range all.Sites {
		all.Sites[i].Site = "" // of one site alone
	}
	return all, err
}

func (u ungrouped) Status(ctx context.Context, p agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Status], error) {
	return stripped(u.Group.Status(ctx, p, r))
}

func (u ungrouped) Show(ctx context.Context, p agents.Principal, r agents.ShowRequest) error {
	r.Display = prefix + r.Display
	return u.Group.Show(ctx, p, r)
}

func (u ungrouped) Capture(ctx context.Context, p agents.Principal, r agents.CaptureRequest) (agents.Picture, error) {
	r.Camera = prefix + r.Camera
	return stripped(u.Group.Capture(ctx, p, r))
}

// Watch drops the updates that repeat a list beside another change: a group sends its lists of waiting
// approvals and of stopped sites together.
func (u ungrouped) Watch(ctx context.Context, p agents.Principal, r agents.WatchRequest, emit func(agents.Update) error) error {
	r.Points = slices.Clone(r.Points)
	for i := range r.Points {
		r.Points[i] = prefix + r.Points[i]
	}
	waiting, stopped, first := -1, false, true
	return u.Group.Watch(ctx, p, r, func(n agents.Update) error {
		strip(reflect.ValueOf(&n).Elem())
		for i := range n.Stops {
			n.Stops[i].Site = "" // of one site alone
		}
		snapshot := first || n.Offer
		if first = false; !snapshot && len(n.Approvals) == waiting {
			n.Approvals = nil
		}
		if n.Approvals != nil {
			waiting = len(n.Approvals)
		}
		if !snapshot && len(n.Stops) == 1 && n.Stops[0].Stopped == stopped {
			n.Stops = nil
		}
		if len(n.Stops) == 1 {
			stopped = n.Stops[0].Stopped
		}
		return emit(n)
	})
}

func stripped[T any](answer T, err error) (T, error) {
	strip(reflect.ValueOf(&answer).Elem())
	return answer, err
}

func strip(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.TrimPrefix(v.String(), prefix))
	case reflect.Slice:
		for i := range v.Len() {
			strip(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[device.Value]() {
				strip(v.Field(i))
			}
		}
	}
}

// unsaid takes out of a site's answers what a group does not pass on: texts of its owner, of
// its drivers and of its errors.
func unsaid(all []any) []any {
	var out []any
	for i, a := range all {
		switch a := a.(type) {
		case agents.PointList:
			points := append([]agents.Point(nil), a.Points...)
			for i := range points {
				points[i].Description, points[i].Device = "", ""
			}
			out = append(out, agents.PointList{Points: points})
		case agents.Answers[agents.Status]:
			s := a.Sites[0]
			s.Site = "here"
			s.Devices = append([]agents.DeviceStatus(nil), s.Devices...)
			for i := range s.Devices {
				s.Devices[i].Model = ""
			}
			out = append(out, agents.Answers[agents.Status]{Sites: []agents.Status{s}})
		case string:
			if _, refused := all[max(0, i-1)].(device.FaultKind); !refused {
				out = append(out, a)
			}
		default:
			out = append(out, a)
		}
	}
	return out
}
