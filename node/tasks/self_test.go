package tasks

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"agentsite/agents"
)

// noting is a site that notes the principal of each call that reads.
type noting struct {
	agents.Site
	who []agents.Principal
}

func (n *noting) Offer(_ context.Context, p agents.Principal) (*agents.Offer, error) {
	n.who = append(n.who, p)
	return nil, nil
}

func (n *noting) Points(_ context.Context, p agents.Principal, _ agents.SiteRequest) (l agents.PointList, err error) {
	n.who = append(n.who, p)
	return l, nil
}

func (n *noting) Read(_ context.Context, p agents.Principal, _ agents.ReadRequest) (r agents.Readings, err error) {
	n.who = append(n.who, p)
	return r, nil
}

func (n *noting) Watch(_ context.Context, p agents.Principal, _ agents.WatchRequest, _ func(agents.Update) error) error {
	n.who = append(n.who, p)
	return nil
}

func (n *noting) History(_ context.Context, p agents.Principal, _ agents.HistoryRequest) (h agents.History, err error) {
	n.who = append(n.who, p)
	return h, nil
}

func (n *noting) Why(_ context.Context, p agents.Principal, _ agents.WhyRequest) (w agents.Why, err error) {
	n.who = append(n.who, p)
	return w, nil
}

func (n *noting) Status(_ context.Context, p agents.Principal, _ agents.SiteRequest) (a agents.Answers[agents.Status], err error) {
	n.who = append(n.who, p)
	return a, nil
}

// TestReadsAsSelf: the site of a task asks as the task's agent, whatever principal the agent passes.
func TestReadsAsSelf(t *testing.T) {
	n := &noting{}
	s := reflect.ValueOf(&site{Site: n, work: &work{self: ann}})
	reads := []string{"Offer", "Points", "Read", "Watch", "History", "Why", "Status"}
	for _, name := range reads {
		m := s.MethodByName(name)
		in := []reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(boss)}
		for i := len(in); i < m.Type().NumIn(); i++ {
			in = append(in, reflect.Zero(m.Type().In(i)))
		}
		m.Call(in)
	}
	if !slices.Equal(n.who, slices.Repeat([]agents.Principal{ann}, len(reads))) {
		t.Errorf("asked as %v", n.who)
	}
}
