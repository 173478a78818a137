package openapi

import (
	"net/http"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/device"
)

const stopID = "emergencyStop"

// named are operations that are offered for as long as they can name a point.
func named(of func(*agents.Offer) []string) (offered func(*reader) bool, names func(*agents.Offer) []string) {
	return func(r *reader) bool { return len(of(r.Offer)) > 0 }, of
}

func readable(o *agents.Offer) []string { return o.Read }
func stored(o *agents.Offer) []string   { return o.History }
func movable(o *agents.Offer) []string  { return slices.Concat(o.Switch, o.Level) }
func released(o *agents.Offer) []string { return o.Release }
func shown(o *agents.Offer) []string    { return o.Show }
func captured(o *agents.Offer) []string { return o.Capture }

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
			id: "listPoints", verb: "GET", path: "/api/points", serve: api.points, result: "PointList",
			summary:  "List the points with their kinds, units, ranges and limits",
			describe: "Points of the kinds switch and level are outputs, which moveOutput moves.",
			offered:  func(r *reader) bool { return r.Points },
		},
		{
			id: "readPoint", verb: "GET", path: "/api/points/{device}/{point}", serve: api.read, names: readable, result: "Reading",
			summary: "Read a point",
		},
		{
			id: "readPoints", verb: "GET", path: "/api/readings", serve: api.readMany, names: readable, result: "Readings",
			summary: "Read several points, or all", query: []parameter{points},
		},
		{
			id: "readHistory", verb: "GET", path: "/api/history", serve: api.history, names: stored, result: "History",
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
			id: "explainPoint", verb: "GET", path: "/api/why/{device}/{point}", serve: api.why, names: readable, result: "Why",
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
			id: "siteStatus", verb: "GET", path: "/api/status", serve: api.status, result: "Status",
			summary: "Tell what is wrong, which outputs are away from safe, and the emergency stop",
			offered: func(r *reader) bool { return r.Status },
		},
		{
			id: "moveOutput", verb: "POST", path: "/api/outputs/{device}/{point}", serve: api.move, names: movable, result: "Output",
			summary: "Move an output for a time", body: "Move", needs: true, tool: agents.Ask{Op: agents.OpMove, Value: device.Number(0)}.Name(),
			describe: "It returns to its safe value by itself. The same call again keeps it there for longer, within the owner's limits. Without a value it returns at once.",
		},
		{
			id: "releaseOutput", verb: "DELETE", path: "/api/outputs/{device}/{point}", serve: api.release, names: released, result: "Output",
			summary: "Return an output to its safe value", tool: agents.Ask{Op: agents.OpMove}.Name(),
		},
		{
			id: stopID, verb: "POST", path: "/api/stop", serve: api.stop, result: "Stopped",
			summary: "Return every output to safe, until the owner resets that in person", tool: agents.OpStop.Tool(),
			offered: func(r *reader) bool { return r.Stop },
		},
		{
			id: "showText", verb: "POST", path: "/api/displays/{device}/{point}", serve: api.show, names: shown, result: "Shown",
			summary: "Show a text on a display", body: "Text", needs: true, tool: agents.OpShow.Tool(),
		},
		{
			id: "captureImage", verb: "GET", path: "/api/cameras/{device}/{point}", serve: api.capture, names: captured, media: "image/*",
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
		if o.offered == nil {
			o.offered, o.names = named(o.names)
		}
	}
	return all
})
