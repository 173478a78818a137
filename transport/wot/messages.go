package wot

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/device"

	"github.com/go-json-experiment/json/jsontext"
)

func statusText(status int) string { return strconv.Itoa(status) }

func (w *session) timestamp() string { return w.Time().UTC().Format(time.RFC3339Nano) }

// subject returns the thing that a message is about: by the ID of its description, or the URL
// that this was read from.
func (w *session) subject(r *request) (subject, error) {
	for _, prefix := range []string{w.idOf(""), w.Base() + "/things/"} {
		if name, ok := strings.CutPrefix(r.ThingID, prefix); ok {
			return parseSubject(name), nil
		}
	}
	return subject{}, notThere("thing of this thingId")
}

// handle handles a message. Types are compared regardless of case: an implementation sends
// subscribeevent.
func (w *session) handle(ctx context.Context, r *request) error {
	of, err := w.subject(r)
	if err != nil {
		return err
	}
	switch strings.ToLower(r.Type) {
	case "readproperty":
		return w.sendProperty(ctx, r, of)
	case "readallproperties":
		all, err := w.readProperties(ctx, w.Who, of)
		return w.sendProperties(r, all, err)
	case "readmultipleproperties":
		if len(r.Properties) == 0 {
			return device.Faultf(device.Invalid, "properties is missing: the names of those to read")
		}
		all := make(map[string]any, len(r.Properties))
		for _, name := range r.Properties {
			v, _, err := w.readProperty(ctx, w.Who, of, name)
			if err != nil {
				return err
			}
			all[name] = v
		}
		return w.sendProperties(r, all, nil)
	case "writeproperty":
		value, err := textOf(r.Data.IsZero(), r.Data.JSONText)
		if err != nil {
			return err
		}
		out, err := w.writeProperty(ctx, w.Who, of, r.Name, value, r.For, w.terms(r))
		if err != nil {
			return err
		}
		return w.send(reading(r, out.Value, w.timestamp()))
	case "writemultipleproperties", "writeallproperties":
		return device.Faultf(device.Invalid, "one message moves one output: send writeProperty for each")
	case "observeproperty":
		return w.observeSocket(r, of)
	case "unobserveproperty":
		w.leave("property " + r.ThingID + " " + r.Name)
		return w.acknowledge(r, "unobserved")
	case "subscribeevent":
		return w.subscribeSocket(r, of, r.Event)
	case "unsubscribeevent":
		w.leave("event " + r.ThingID + " " + r.Event)
		return w.acknowledge(r, "unsubscribed")
	case "subscribeallevents", "unsubscribeallevents":
		return w.allEvents(ctx, r, of, strings.EqualFold(r.Type, "subscribeAllEvents"))
	case "invokeaction":
		return w.invokeSocket(ctx, r, of)
	case "queryaction":
		t, err := w.task(ctx, w.Who, of, r.Action, w.taskOf(r))
		if err != nil {
			return err
		}
		return w.send(status(r, t))
	case "cancelaction":
		t, err := w.task(ctx, w.Who, of, r.Action, w.taskOf(r))
		if err == nil {
			t, err = w.Tasks.Cancel(ctx, w.Who, t.ID)
		}
		if err != nil {
			return err
		}
		t.Steps = nil
		return w.send(status(r, t))
	}
	return device.Faultf(device.Invalid, "there is no message type %.40q", r.Type)
}

// textOf returns a member's JSON; nil where it is missing.
func textOf(missing bool, text func() ([]byte, error)) (jsontext.Value, error) {
	if missing {
		return nil, nil
	}
	return text()
}

func reading(r *request, value any, at string) message {
	m := reply(r, "propertyReading")
	m.Name, m.Property, m.Value, m.Data, m.Timestamp = r.Name, r.Name, value, value, at
	return m
}

func (w *session) sendProperty(ctx context.Context, r *request, of subject) error {
	v, from, err := w.readProperty(ctx, w.Who, of, r.Name)
	if err != nil {
		return err
	}
	at := from.Time
	if at == "" {
		at = w.timestamp()
	}
	return w.send(reading(r, v, at))
}

func (w *session) sendProperties(r *request, all map[string]any, err error) error {
	if err != nil {
		return err
	}
	m := reply(r, "propertyReadings")
	m.Data, m.Timestamp = all, w.timestamp()
	return w.send(m)
}

// acknowledge says that something was done which has no other answer.
func (w *session) acknowledge(r *request, text string) error {
	m := reply(r, "acknowledgement")
	m.Message = text
	return w.send(m)
}

// observeSocket sends the value of a property, and each other one.
func (w *session) observeSocket(r *request, of subject) error {
	address, err := addressOf(of, r.Name)
	if err != nil {
		return err
	}
	return w.watch(r, "property "+r.ThingID+" "+r.Name, func(ctx context.Context) error {
		return w.changes(ctx, w.Who, address, func(now agents.Reading) error {
			if !isKnown(now) {
				return w.send(w.failure(r, notKnown(now)))
			}
			return w.send(reading(r, now.Value, w.timestamp()))
		})
	})
}

// subscribeSocket acknowledges a subscription once nothing can be missed any more, and sends each
// event.
func (w *session) subscribeSocket(r *request, of subject, name string) error {
	address, err := addressOf(of, name)
	if err != nil {
		return err
	}
	return w.watch(r, "event "+r.ThingID+" "+name, func(ctx context.Context) error {
		return w.happenings(ctx, w.Who, address, func(first bool, now agents.Reading) error {
			if first {
				return w.acknowledge(r, "subscribed")
			}
			m := reply(r, "event")
			m.Event, m.Data, m.Timestamp = name, now.Value, w.timestamp()
			return w.send(m)
		})
	})
}

// allEvents subscribes to all events of a device, or ends that.
func (w *session) allEvents(ctx context.Context, r *request, of subject, subscribe bool) error {
	have, err := w.catalog(ctx, w.Who)
	if err != nil {
		return err
	}
	if of.kind != "" || !slices.Contains(have.devices(), of.name) {
		return notThere("such thing with events")
	}
	for _, address := range have.Read {
		thing, name, _ := device.SplitAddress(address)
		if thing != of.name || have.kind(address) != device.KindEvent {
			continue
		}
		if !subscribe {
			w.leave("event " + r.ThingID + " " + name)
		} else if err := w.subscribeSocket(r, of, name); err != nil {
			return err
		}
	}
	if !subscribe {
		return w.acknowledge(r, "unsubscribed")
	}
	return nil
}

// taskOf returns the ID of the task that a message is about.
func (w *session) taskOf(r *request) string {
	if r.Task != "" {
		return r.Task
	}
	return w.tasks[r.ThingID+" "+r.Action]
}

// maxTasksKnown bounds the tasks that a session remembers by their actions.
const maxTasksKnown = 64

// invokeSocket invokes an action. A task's status is sent as it changes.
func (w *session) invokeSocket(ctx context.Context, r *request, of subject) error {
	input, err := textOf(r.Input.IsZero(), r.Input.JSONText)
	if err != nil {
		return err
	}
	out, err := w.invokeAction(ctx, w.Who, of, r.Action, input, 0, w.terms(r))
	if err != nil {
		return err
	}
	t, isTask := out.(task.Task)
	if !isTask {
		m := reply(r, "actionStatus")
		m.Action, m.Status, m.Output = r.Action, "completed", out
		return w.send(m)
	}
	if len(w.tasks) < maxTasksKnown {
		w.tasks[r.ThingID+" "+r.Action] = t.ID
	}
	if r.Action == answerAction || t.State.Ended() {
		return w.send(status(r, t))
	}
	return w.watch(r, "task "+t.ID, func(ctx context.Context) error {
		return w.Tasks.Watch(ctx, w.Who, t.ID, func(now task.Task) error {
			now.Steps = nil
			return w.send(status(r, now))
		})
	})
}

// status returns the status of a task, as the specification names it.
func status(r *request, t task.Task) message {
	m := reply(r, "actionStatus")
	m.Action, m.Output, m.Status = r.Action, t, "pending"
	switch {
	case t.State == task.Completed:
		m.Status = "completed"
	case t.State.Ended():
		m.Status = "failed"
	}
	if r.Action == chatAction && t.Skill == task.TalkSkill && t.State == task.Completed {
		m.Output, _ = chatOf(t)
	}
	return m
}
