package wot

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"
	"agentsite/transport/adapter"

	"github.com/go-json-experiment/json/jsontext"
)

// The HTTP binding of Thing Description 1.1 (section 8.3). A property is read by GET and written by
// PUT, and an action is invoked by POST.

// timeHeader is the header with the time of a property's reading.
const timeHeader = "Agentsite-Time"

func (s server) read(ctx context.Context, c *adapter.Call) (any, error) {
	v, r, err := s.readProperty(ctx, c.Who, subjectOf(c.Request), c.Request.PathValue("name"))
	if r.Time != "" {
		c.Writer.Header().Set(timeHeader, r.Time)
	}
	return v, err
}

func (s server) readAll(ctx context.Context, c *adapter.Call) (any, error) {
	return s.readProperties(ctx, c.Who, subjectOf(c.Request))
}

// number returns a number of the query; nil where it is not there.
func number(r *http.Request, name string) (*float64, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(query[name]) > 1 {
		return nil, device.Faultf(device.Invalid, "the query is not well formed, or has %s more than once", name)
	}
	text := query.Get(name)
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, device.Faultf(device.Invalid, "%s takes seconds, not %.40q", name, text)
	}
	return &n, nil
}

// heldHeader has for how many seconds an output is held.
const heldHeader = "Agentsite-Seconds-Left"

func (s server) write(ctx context.Context, c *adapter.Call) (any, error) {
	var value jsontext.Value
	if err := c.Decode(&value); err != nil {
		return nil, err
	}
	seconds, err := number(c.Request, "for")
	if err != nil {
		return nil, err
	}
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	out, err := s.writeProperty(ctx, c.Who, subjectOf(c.Request), c.Request.PathValue("name"), value, seconds, terms)
	if err != nil {
		return nil, err
	}
	c.Writer.Header().Set(heldHeader, strconv.FormatFloat(out.Left, 'f', -1, 64))
	return noContent, nil
}

var noContent = &adapter.Answer{Status: http.StatusNoContent}

func (s server) invoke(ctx context.Context, c *adapter.Call) (any, error) {
	of, name := subjectOf(c.Request), c.Request.PathValue("name")
	if of.kind == sitePrefix && name == "stop" { // which no mistake in its body or its headers keeps from stopping
		terms, _ := c.Terms()
		return s.invokeAction(ctx, c.Who, of, name, nil, 0, terms)
	}
	var input jsontext.Value
	if err := c.Decode(&input); err != nil {
		return nil, err
	}
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	wait, err := number(c.Request, "wait")
	if err == nil {
		err = agents.CheckNumber("wait_seconds", wait)
	}
	if err != nil {
		return nil, err
	}
	longest := maxWait
	if wait != nil {
		longest = time.Duration(*wait * float64(time.Second))
	}
	out, err := s.invokeAction(ctx, c.Who, of, name, input, longest, terms)
	if err != nil {
		return nil, err
	}
	if out == nil {
		return noContent, nil
	}
	t, isTask := out.(task.Task)
	if isTask && name == chatAction && t.Skill == task.TalkSkill {
		return chatOf(t)
	}
	if isTask && !t.State.Ended() {
		c.Writer.Header().Set("Location", "/"+pathOf(agentPrefix+t.Agent, "actions", t.Skill, t.ID))
		return &adapter.Answer{Status: http.StatusAccepted, Value: t}, nil
	}
	return out, nil
}

// query returns a task (queryaction).
func (s server) query(ctx context.Context, c *adapter.Call) (any, error) {
	return s.task(ctx, c.Who, subjectOf(c.Request), c.Request.PathValue("name"), c.Request.PathValue("task"))
}

// cancel ends a task (cancelaction).
func (s server) cancel(ctx context.Context, c *adapter.Call) (any, error) {
	t, err := s.task(ctx, c.Who, subjectOf(c.Request), c.Request.PathValue("name"), c.Request.PathValue("task"))
	if err != nil {
		return nil, err
	}
	_, err = s.Tasks.Cancel(ctx, c.Who, t.ID)
	return noContent, err
}
