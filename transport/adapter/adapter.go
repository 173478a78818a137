// Package adapter has the common parts of protocol adapters over HTTP. These are principals of
// callers, JSON of requests and answers, HTTP statuses of faults, and documents with only the parts
// that their reader may see.
package adapter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/task"
	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"
	"agentsite/node/identity"
	"agentsite/node/things"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

// Site is the site that adapters render.
type Site struct {
	Node    *node.Node
	Tasks   task.Host // nil where there are no hosted agents
	Tools   *tools.Catalog
	Owners  []op.Row // the operations for owners, for protocols that render them
	Key     identity.Key
	Name    string
	Version string // of the program
	// Protocols are those of the configuration, by the names that it has for them.
	Protocols []string
	// Now returns the site's best-known time, and whether it is more than a guess.
	Now func() (t time.Time, sure bool)
	// Domain is the public name of the site, with a port where it is not 443; "" for none. Callers
	// are the did:wba names whose keys may be looked up.
	Domain  string
	Callers []string
	// Things are the descriptions of other things that are registered here; nil where the site is
	// no directory.
	Things *things.Store
	// Sites returns the other sites of the realm that are known; nil for none.
	Sites func() []OtherSite
	// PushHosts are the hosts, with a port where it is not 443, that push notifications may be sent
	// to; PushFile has their configurations.
	PushHosts []string
	PushFile  File
	// Ending ends when the site begins to, and with it the streams, which would hold that up. Go
	// runs a function beside the routes, which ends with Ending, before the site ends.
	Ending context.Context
	Go     func(func())
}

// Time returns the time by the site's clock, for messages.
func (s *Site) Time() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	t, _ := s.Now()
	return t
}

// File is a file of the site's folder, which an adapter has for itself. Read returns nil if it does
// not exist. Write replaces it durably, and only the site's user can read it.
type File struct {
	Read  func() ([]byte, error)
	Write func([]byte) error
}

// OtherSite is a site of the same realm, from its own record.
type OtherSite struct{ ID, Name, URL string }

// Call is a request to a route of an adapter.
type Call struct {
	Who     agents.Principal // the zero Principal for a stranger, whom only web.Readers lets in
	Request *http.Request
	Writer  http.ResponseWriter

	body []byte
}

// Answer is an answer that is not 200 with a value in application/json.
type Answer struct {
	Status int    // 0 for 200
	Type   string // the media type; "" for application/json
	Value  any    // encoded as JSON; a []byte is sent as it is, and nil has no body
}

// Answered is returned by a handler that has written its answer itself.
var Answered = new(Answer)

// Problem is the body of a refusal (RFC 9457, application/problem+json).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Fault  string `json:"fault"`
	// Approval is set if an owner has to approve the call. After that, the client repeats the same
	// call with this text in the header Agentsite-Approval.
	Approval string  `json:"approval,omitzero"`
	After    float64 `json:"retry_after_seconds,omitzero"` // until the call may be allowed
}

// Route returns a route whose handler gets the principal and the body. The result of do is answered
// as JSON, an *Answer as it is, and an error as a Problem, as are refusals before. The body is valid
// until do returns.
func (s *Site) Route(pattern string, admission web.Admission, do func(context.Context, *Call) (any, error)) web.Route {
	return web.Route{Pattern: pattern, Admission: admission, Refuse: web.RefuseProblem, Serve: func(w http.ResponseWriter, r *http.Request, c web.Caller) {
		call := &Call{Request: r, Writer: w}
		body, done := c.ReadBody(w, r)
		if body == nil {
			return
		}
		defer done()
		call.body = body.Bytes()
		var v any
		var err error
		if call.Who = c.Who; admission != web.Readers {
			_, err = c.Principal()
		}
		if err == nil {
			v, err = do(r.Context(), call)
		}
		call.answer(v, err)
	}}
}

// answer sends the result of a handler.
func (c *Call) answer(v any, err error) {
	if err != nil {
		v = problem(c.Request, err)
	}
	a, ok := v.(*Answer)
	switch {
	case a == Answered:
		return
	case !ok:
		a = &Answer{Value: v}
	}
	text, ok := a.Value.([]byte)
	if !ok && a.Value != nil {
		if text, err = json.Marshal(a.Value, json.Deterministic(true)); err != nil {
			slog.Error("an answer could not be encoded", "path", c.Request.URL.Path, "err", err)
			http.Error(c.Writer, "the site failed at this; its log says more", http.StatusInternalServerError)
			return
		}
	}
	h := c.Writer.Header()
	if a.Value != nil {
		h.Set("Content-Type", cmp.Or(a.Type, "application/json"))
		h.Set("Content-Length", strconv.Itoa(len(text)))
	}
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	web.ExtendDeadline(c.Writer) // the work may have used it up
	c.Writer.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	c.Writer.Write(text)
}

// statuses are those of faults.
var statuses = map[device.FaultKind]int{
	device.Invalid:        http.StatusBadRequest,
	device.Denied:         http.StatusForbidden,
	device.Unsafe:         http.StatusConflict,
	device.Busy:           http.StatusTooManyRequests,
	device.Offline:        http.StatusBadGateway,
	device.Expired:        http.StatusGone,
	device.UnknownOutcome: http.StatusGatewayTimeout,
	device.Unavailable:    http.StatusServiceUnavailable,
}

// ErrNotFound is answered with 404. Its text is the text of the Problem.
type ErrNotFound string

func (e ErrNotFound) Error() string { return string(e) }

// problem renders an error.
func problem(r *http.Request, err error) *Answer {
	var none ErrNotFound
	var needs *agents.ApprovalNeeded
	if errors.As(err, &none) {
		return problemOf(http.StatusNotFound, device.Invalid, err.Error(), "")
	}
	if errors.As(err, &needs) {
		return problemOf(http.StatusForbidden, device.Unavailable, needs.Says, needs.State)
	}
	f := device.AsFault(err)
	if f.Kind == device.Internal {
		if !errors.Is(err, context.Canceled) { // a caller that left is no defect
			slog.Error("a request failed", "path", r.URL.Path, "err", err)
		}
		return problemOf(http.StatusInternalServerError, f.Kind, "the site failed at this; its log says more", "")
	}
	a := problemOf(statuses[f.Kind], f.Kind, f.Msg, "")
	says := a.Value.(Problem)
	says.After = f.After.Round(time.Millisecond).Seconds()
	a.Value = says
	return a
}

// Problem renders an error as Route answers it, for protocols that send messages.
func (c *Call) Problem(err error) Problem { return problem(c.Request, err).Value.(Problem) }

// Refuse returns an answer that refuses a call with a status which no fault has.
func Refuse(status int, detail string) *Answer { return problemOf(status, device.Invalid, detail, "") }

func problemOf(status int, kind device.FaultKind, detail, approval string) *Answer {
	return &Answer{Status: status, Type: "application/problem+json", Value: Problem{
		Title: http.StatusText(status), Status: status, Detail: detail, Fault: string(kind), Approval: approval,
	}}
}

// Body returns the body, which may be empty.
func (c *Call) Body() []byte { return c.body }

// Decode decodes a JSON body into v. A field that v does not have is an invalid request, as is a
// body that nests too deep. An empty body leaves v unchanged.
func (c *Call) Decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	raw, err := rpc.ParseJSON(c.body)
	if err == nil {
		err = raw.DecodeStrict(v)
	}
	if err != nil {
		return device.Faultf(device.Invalid, "the body: %w", err)
	}
	return nil
}

// termHeaders are the headers of Call.Terms.
var termHeaders = []string{"Idempotency-Key", "Agentsite-Expires-In", "Agentsite-Approval", "Agentsite-Via"}

// Terms returns the terms in the headers of the request: Idempotency-Key, Agentsite-Expires-In in
// seconds, Agentsite-Approval and Agentsite-Via, whose names are separated by commas. A header in
// several lines is refused: they would be several calls, or hide through whom the call came.
func (c *Call) Terms() (t agents.Terms, err error) {
	h := c.Request.Header
	for _, name := range termHeaders {
		if len(h.Values(name)) > 1 {
			return t, device.Faultf(device.Invalid, "%s stands in the request more than once; write one line, in which commas separate the names of Agentsite-Via", name)
		}
	}
	if values := h.Values("Idempotency-Key"); len(values) > 0 {
		t.Key = new(strings.Trim(values[0], `"`))
	}
	if text := h.Get("Agentsite-Expires-In"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, device.Faultf(device.Invalid, "Agentsite-Expires-In takes seconds, not %.40q", text)
		}
		t.Within = &seconds
	}
	t.Approval = h.Get("Agentsite-Approval")
	if via := h.Get("Agentsite-Via"); via != "" {
		for _, name := range strings.SplitN(via, ",", agents.MaxVia+2) { // more than that is refused all the same
			t.Via = append(t.Via, strings.TrimSpace(name))
		}
	}
	return t, nil
}

// Base returns the URL under which the caller reached the site, without a slash at its end. Its
// host was checked against the allow-list.
func (c *Call) Base() string { return web.Base(c.Request) }
