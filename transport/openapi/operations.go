package openapi

import (
	"net/http"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/op"
)

const stopID = "emergencyStop"

func readable(o *agents.Offer) []string { return o.Read }
func movable(o *agents.Offer) []string  { return slices.Concat(o.Switch, o.Level) }
func released(o *agents.Offer) []string { return o.Release }

func asks(r *reader) bool { return len(r.agents) > 0 }

var (
	points   = parameter{name: "point", describe: "the address of a point, device/point; once for each, all without it", many: true}
	onePoint = parameter{name: "point", describe: "the address of a point, device/point", needed: true}
	wait     = parameter{name: "wait_seconds", describe: "answers when the task has ended or asks something, or after so many seconds", number: true}
)

// operations are all, in the order of the documents. They are made when a site speaks this protocol.
var operations = sync.OnceValue(func() []*operation {
	all := []*operation{
		{
			id: "listPoints", verb: "GET", path: "/api/points", does: op.Points,
			summary:  "List the points with their kinds, units, ranges and limits",
			describe: "Points of the kinds switch and level are outputs, which moveOutput moves.",
		},
		{
			id: "readPoint", verb: "GET", path: "/api/points/{device}/{point}",
			does: op.Read, serve: api.read, result: "Reading",
			summary: "Read a point",
		},
		{
			id: "readPoints", verb: "GET", path: "/api/readings", does: op.Read,
			summary: "Read several points, or all", query: []parameter{points},
		},
		{
			id: "readHistory", verb: "GET", path: "/api/history", does: op.History,
			summary:  "Read how a point went",
			describe: "A measurement is answered in steps, any other point by its changes.",
			query: []parameter{
				onePoint,
				{name: "from", describe: "RFC 3339, such as 2026-01-31T18:00:00Z; instead of hours"},
				{name: "to", describe: "RFC 3339; now when left out"},
				{name: "hours", describe: "how long before the end; 12 when left out", number: true},
				{name: "steps", describe: "about how many steps; 24 when left out", number: true},
			},
		},
		{
			id: "explainPoint", verb: "GET", path: "/api/why/{device}/{point}", does: op.Why,
			summary: "Explain why a point is as it is",
		},
		{
			id: "watchPoints", verb: "GET", path: "/api/events", serve: api.watch, names: readable, media: "text/event-stream",
			summary: "Watch points as they change",
			describe: "An endless stream of server-sent events. The data of the first is an object with all readings, the emergency stop and the calls that wait for an owner; " +
				"of each further one, what changed of these. After offer_changed it is all again.",
			query: []parameter{points, {name: "every", describe: "the shortest time between two events in seconds; 0 when left out", number: true}},
		},
		{
			id: "siteStatus", verb: "GET", path: "/api/status", does: op.Status,
			summary: "Tell what is wrong, which outputs are away from safe, and the emergency stop",
		},
		{
			id: "moveOutput", verb: "POST", path: "/api/outputs/{device}/{point}", does: op.Move, names: movable,
			summary: "Move an output for a time", body: "Move", needs: true, tool: op.SetLevel.Name,
			describe: "It returns to its safe value by itself. The same call again keeps it there for longer, within the owner's limits. Without a value it returns at once.",
		},
		{
			id: "releaseOutput", verb: "DELETE", path: "/api/outputs/{device}/{point}", does: op.Move, names: released,
			summary: "Return an output to its safe value", tool: op.ReleaseOutput.Name,
		},
		{
			id: stopID, verb: "POST", path: "/api/stop", does: op.Stop,
			summary: "Return every output to safe, until the owner resets that in person", tool: op.EmergencyStop.Name,
		},
		{
			id: "showText", verb: "POST", path: "/api/displays/{device}/{point}", does: op.Show, result: "Shown",
			summary: "Show a text on a display", body: "Text", needs: true, tool: op.ShowText.Name,
		},
		{
			id: "captureImage", verb: "GET", path: "/api/cameras/{device}/{point}",
			does: op.Capture, serve: api.capture, media: "image/*",
			summary: "Take a picture", describe: "The time at which it was taken is in Last-Modified.",
		},
		{
			id: "listAgents", verb: "GET", path: "/api/agents", serve: api.agents, tasks: true, result: "Agents",
			summary: "List the hosted agents with their skills", offered: asks,
		},
		{
			id: "askAgent", verb: "POST", path: "/api/agents/{agent}/tasks", serve: api.ask, tasks: true, status: http.StatusCreated, result: "Task",
			summary: "Ask an agent for a task", body: "Ask", tool: agents.OpAsk.Tool(), offered: asks,
		},
		{
			id: "listTasks", verb: "GET", path: "/api/tasks", serve: api.listTasks, tasks: true, result: "Tasks",
			summary: "List the caller's tasks, the newest first", offered: asks,
		},
		{
			id: "getTask", verb: "GET", path: "/api/tasks/{task}", serve: api.task, tasks: true, result: "Task",
			summary: "Tell how a task is, or wait for its end", query: []parameter{wait}, offered: asks,
		},
		{
			id: "answerTask", verb: "POST", path: "/api/tasks/{task}/answer", serve: api.answer, tasks: true, result: "Task",
			summary: "Answer the question of a task", body: "Answer", needs: true, offered: asks,
			describe: "What an owner has to approve is not answered here.",
		},
		{
			id: "cancelTask", verb: "POST", path: "/api/tasks/{task}/cancel", serve: api.cancel, tasks: true, result: "Task",
			summary: "Cancel a task and release what it holds", offered: asks,
		},
	}
	for _, o := range all {
		o.complete()
	}
	return all
})

// complete sets what follows from the operation that is asked.
func (o *operation) complete() {
	if does := o.does; does != nil {
		if o.serve == nil {
			o.serve = api.do
		}
		if o.names == nil && does.Field != "" {
			o.names = func(offer *agents.Offer) []string { points, _ := does.Offered(offer); return points }
		}
		if o.offered == nil && o.names == nil {
			o.offered = func(r *reader) bool { _, offered := does.Offered(r.Offer); return offered }
		}
		if o.answer = does.Answer; does.One != nil {
			o.answer = does.One
		}
		if o.result == "" && o.media == "" {
			o.result = o.answer.Name()
		}
	}
	if o.offered == nil {
		o.offered = func(r *reader) bool { return len(o.names(r.Offer)) > 0 }
	}
}
