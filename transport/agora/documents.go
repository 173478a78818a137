package agora

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"

	"agentsite/agents/tools"
)

// document is a Protocol Document: an operation in words, the same on every site. Its hash is a
// name that clients keep, so that a document is never changed: another one takes its place.
type document struct {
	tool string // of the site, which answers it
	text string
	hex  string // the hash as the specification writes it
	b64  string // and as the Python implementation does
}

// drafts are the documents without their common parts.
var drafts = []struct{ tool, name, says, text string }{
	{"list_points", "List the points of a site", "The sensors and outputs of a site, with kinds, units and ranges.",
		`The request is {}.
The answer is {"points": [...]}. Each point has "point", its name in all other requests, "kind" (measurement, state, switch, level,
event, text or image), and where it applies "unit" (UCUM), "min", "max", "values", "description". A switch and a level are outputs:
they also have "safe", the value that they return to, and "max_seconds", how long they may be away from it. "confirm": "owner" says
that the site's owner has to approve each move.`},
	{"read_points", "Read points of a site", "The latest readings of a site's sensors and outputs.",
		`The request is {"points": [names]}; {} reads all.
The answer is {"readings": [...]}. Each has "point", "value", "unit", "time" (RFC 3339), "age_seconds", and "quality": good, stale (too
old to rely on) or fault ("why" says more, and "value" is null).`},
	{"read_history", "Read the history of a point", "How a point went over a time.",
		`The request is {"point": name, "hours": number, "steps": number}. Without hours the last 12 are meant, without steps about 24.
"from" and "to" (RFC 3339) may take the place of hours.
The answer of a measurement has "min", "mean", "max" and "steps", each with "time", "min", "mean", "max", "last". Any other point has
"changes", each with "time" and "value".`},
	{"explain_point", "Explain a point", "Why a point is as it is: who holds an output, and what forbids a change.",
		`The request is {"point": name}.
The answer has the reading, and of an output "output" with "held_by" and "seconds_left", and "changes", the newest first.`},
	{"switch_output", "Switch an output", "Switches an output on or off for a time, after which it returns to its safe value.",
		`The request is {"output": name, "on": true or false, "for_seconds": number}. Without for_seconds the site chooses. To keep it so, send
the request again before the time is over, within the limits of the site's owner.
The answer has "output", "value", "safe" and "seconds_left". "going_to" is the value that it is still on its way to.`},
	{"set_level", "Set the level of an output", "Sets an output to a number for a time, after which it returns to its safe value.",
		`The request is {"output": name, "value": number, "for_seconds": number}. Without for_seconds the site chooses. To keep it so, send the
request again before the time is over, within the limits of the site's owner.
The answer has "output", "value", "safe" and "seconds_left". "going_to" is the value that it is still on its way to.`},
	{"release_output", "Release an output", "Returns an output to its safe value now.",
		`The request is {"output": name}.
The answer has "output", "value" and "safe".`},
	{"emergency_stop", "Stop a site", "Sends every output of a site to its safe value, until the owner resets the stop in person.",
		`The request is {}. It is for when something goes wrong.
The answer has "emergency_stop": true, and "outputs", each with "output", "value" and "safe".`},
	{"site_status", "Status of a site", "What is wrong with the devices of a site, and which outputs are away from their safe values.",
		`The request is {}.
The answer has "devices" with their "faults", "outputs_away_from_safe", "outputs_not_ready" and "emergency_stop".`},
	{"show_text", "Show a text", "Shows a text on a display of a site.",
		`The request is {"display": name, "text": text}.
The answer repeats it.`},
	{"capture_image", "Take a picture", "Takes a picture with a camera of a site.",
		`The request is {"camera": name}.
The answer has "value" with "camera", "time" and "mime_type", and "content": [{"mime_type": type, "data": the picture in base64}].`},
	{tools.AskAgent, "Ask an agent of a site for a task", "Asks an agent that a site hosts for a piece of work, and follows it.",
		`The request {} is answered with "agents", each with "name", "description" and "skills", and with "tasks", those that you asked for.
The request {"agent": name, "skill": name, "arguments": object, "text": text, "wait_seconds": number} asks for a task. skill may be
left out where the agent has one; arguments are those that the skill says. It is answered when the task has ended, when it asks
something, or after wait_seconds (25 when left out).
The answer is the task: "id", "agent", "state" (submitted, working, input_required, auth_required, completed, failed, rejected or
canceled), "says", and where it applies "question" with "text" and "options", or "result".
With "multiround": true the answer has a "conversationId" for as long as the task goes on. A message of that conversation is {} to
wait for more, {"answer": text} to answer the question, or {"cancel": true}. To close the conversation does not cancel the task.
Without it, {"task": id} and the same members do the same.
In auth_required an owner of the site has to approve something elsewhere; no message does that.`},
}

const frame = `---
name: %s
description: %q
multiround: %v
---

%s

Requests and answers are JSON objects. A body that is a text holds the object in JSON, and is answered with a text that does.
A request that is not as it says here is answered with {"error": what is wrong, "fault": "invalid"}. What the site refuses or cannot do
is a failure whose body has "error", a sentence that says what to do next, and "fault": denied, unsafe, busy, offline, expired,
unknown_outcome, unavailable or internal. After unknown_outcome it is not known whether it was done: look before you ask again.
Names of points are those of the document "List the points of a site".
`

// documents makes the documents.
func documents() []document {
	all := make([]document, len(drafts))
	for i, d := range drafts {
		text := fmt.Sprintf(frame, d.name, d.says, d.tool == tools.AskAgent, d.text)
		sum := sha1.Sum([]byte(text))
		all[i] = document{d.tool, text, hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:])}
	}
	return all
}

// source returns the document as the kind of URL that has its own content.
func (d document) source() string { return "data:text/plain;charset=utf-8," + url.PathEscape(d.text) }
