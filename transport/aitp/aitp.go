// Package aitp renders the site's tools as threads of AITP (transport T01, a JSON API). A caller
// names an operation or chooses one, fills in a form with the missing arguments, and reads the
// result as a message. Capabilities are decisions (02) and data requests (03). It needs no language
// model.
package aitp

import (
	"context"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBegin = 8        // messages that a thread begins with
	maxTexts = 16       // of a caller's message
	maxText  = 16 << 10 // bytes of them all
	maxActor = 256      // bytes of an actor's ID
)

// Routes returns the routes. The specification writes both thread and threads, and retrieves a
// thread by POST.
func Routes(s *adapter.Site) (routes []web.Route) {
	a := &server{Site: s, threads: adapter.Handles[*thread]{What: "thread", Life: time.Hour, Each: 4, All: 32}}
	for _, at := range []string{"/aitp/v1/threads", "/aitp/v1/thread"} {
		routes = append(routes,
			s.Route("POST "+at, web.Principals, a.create),
			s.Route("GET "+at+"/{id}", web.Principals, a.retrieve),
			s.Route("POST "+at+"/{id}", web.Principals, a.retrieve),
			s.Route("GET "+at+"/{id}/messages", web.Principals, a.list),
			s.Route("POST "+at+"/{id}/messages", web.Principals, a.add),
		)
	}
	return routes
}

type server struct {
	*adapter.Site
	threads adapter.Handles[*thread]
}

// createBody begins a thread.
type createBody struct {
	Messages []jsontext.Value `json:"messages"`
	Metadata struct {
		Actors []jsontext.Value `json:"actors"`
	} `json:"metadata"`
}

// metadata is that of a caller's message. The terms of the call are in it.
type metadata struct {
	Actor string `json:"actor"`
	agents.Terms
}

// incoming is a caller's message.
type incoming struct {
	Role        string         `json:"role"`
	Content     jsontext.Value `json:"content"`
	Attachments jsontext.Value `json:"attachments"`
	Metadata    metadata       `json:"metadata"`

	texts []string // Content
}

// decode decodes a body, whose additional members are ignored.
func decode(body []byte, into any) error {
	raw, err := rpc.ParseJSON(body)
	if err == nil {
		err = raw.Decode(into)
	}
	if err != nil {
		return device.Faultf(device.Invalid, "the body: %w", err)
	}
	return nil
}

// parseMessage decodes a message: an object, or a text alone. Its terms are t where it does not
// have others.
func parseMessage(body []byte, t agents.Terms) (m incoming, err error) {
	m.Metadata.Terms = t
	if text := jsontext.Value(body); text.Kind() == '"' {
		m.Content = text
	} else if err := decode(body, &m); err != nil {
		return m, err
	}
	switch {
	case m.Role != "" && m.Role != "user":
		return m, device.Faultf(device.Invalid, "role: a caller's messages are the user's")
	case m.Attachments != nil && m.Attachments.Kind() != 'n' && strings.TrimSpace(string(m.Attachments)) != "[]":
		return m, device.Faultf(device.Invalid, "attachments: this site takes no files")
	}
	size := 0
	if m.texts, err = textsOf(m.Content); err != nil {
		return m, err
	}
	for _, text := range m.texts {
		size += len(text)
	}
	with := &m.Metadata.Terms // they are kept while the thread waits for the rest of a call
	if with.Key != nil {
		size += len(*with.Key)
	}
	for _, name := range with.Via {
		size += len(name)
	}
	if len(with.Via) > agents.MaxVia {
		return m, device.Faultf(device.Denied, "this message came through %d sites and agents, and may through %d", len(with.Via), agents.MaxVia)
	}
	if size > maxText || len(m.texts) > maxTexts || len(m.Metadata.Actor) > maxActor {
		return m, device.Faultf(device.Invalid, "a message has at most %d texts of %d bytes together with its terms, and its actor %d bytes", maxTexts, maxText, maxActor)
	}
	return m, nil
}

// textsOf returns the texts of a message's content: a text, or a list of texts.
func textsOf(content jsontext.Value) (texts []string, err error) {
	switch content.Kind() {
	case '"':
		texts = make([]string, 1)
		err = json.Unmarshal(content, &texts[0])
	case '[':
		err = json.Unmarshal(content, &texts)
	default:
		return nil, device.Faultf(device.Invalid, "content: must be a text or a list of texts")
	}
	if err != nil || len(texts) == 0 {
		return nil, device.Faultf(device.Invalid, "content: must be a text or a list of texts")
	}
	return texts, nil
}

// create begins a thread with its messages, which are answered.
func (a *server) create(ctx context.Context, c *adapter.Call) (any, error) {
	var body createBody
	t, err := c.Terms()
	if err == nil && len(c.Body()) > 0 {
		err = decode(c.Body(), &body)
	}
	if err != nil {
		return nil, err
	}
	if len(body.Messages) > maxBegin {
		return nil, device.Faultf(device.Invalid, "messages: a thread begins with at most %d", maxBegin)
	}
	messages := make([]incoming, len(body.Messages))
	for i, text := range body.Messages {
		if messages[i], err = parseMessage(text, t); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, actor := range body.Metadata.Actors {
		if size += len(actor); size > maxText {
			return nil, device.Faultf(device.Invalid, "metadata.actors: have at most %d bytes together", maxText)
		}
	}
	th := &thread{now: a.Time, created: a.Time().Unix(), site: a.Name, actors: clone(body.Metadata.Actors)}
	th.id, _ = a.threads.Add(c.Who, c.Who.Account, th)
	for _, m := range messages {
		if _, err := a.say(ctx, c.Who, th, m); err != nil {
			return nil, err
		}
	}
	return th.render(), nil
}

func clone(all []jsontext.Value) (out []jsontext.Value) {
	for _, v := range all {
		out = append(out, v.Clone())
	}
	return out
}

func (a *server) retrieve(_ context.Context, c *adapter.Call) (any, error) {
	th, err := a.threads.Get(c.Who, c.Request.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return th.render(), nil
}

// list returns the messages of a thread, the oldest first.
func (a *server) list(_ context.Context, c *adapter.Call) (any, error) {
	th, err := a.threads.Get(c.Who, c.Request.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return messageList{"list", th.all(), false}, nil
}

// add adds a message and answers it. The answers are in the thread when add returns.
func (a *server) add(ctx context.Context, c *adapter.Call) (any, error) {
	th, err := a.threads.Get(c.Who, c.Request.PathValue("id"))
	if err != nil {
		return nil, err
	}
	t, err := c.Terms()
	if err != nil {
		return nil, err
	}
	m, err := parseMessage(c.Body(), t)
	if err != nil {
		return nil, err
	}
	return a.say(ctx, c.Who, th, m)
}
