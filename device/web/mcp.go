package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentsite/device"
	"agentsite/device/driver"
)

// mcpConfig is the YAML of mcp: values in results of tools of an MCP server elsewhere, and outputs that a tool sets.
// What the server says of its tools is not read: the owner has chosen them.
type mcpConfig struct {
	endpoint
	Inputs  map[string]mcpInput  `json:"inputs,omitempty" jsonschema:"what is read, each with a name of yours"`
	Outputs map[string]mcpOutput `json:"outputs,omitempty" jsonschema:"what is set, each with a name of yours"`
}

// mcpPlace is the YAML of a value's place.
type mcpPlace struct {
	Tool      string      `json:"tool" jsonschema:"the tool that tells the value"`
	Arguments string      `json:"arguments,omitempty" jsonschema:"its arguments as JSON, such as '{\"id\": 1}'; none when not written"`
	Path      driver.Path `json:"path,omitempty" jsonschema:"where the value is in the result, such as readings[0].value; the whole result when not written"`
}

type mcpInput struct {
	mcpPlace
	driver.InputPoint
	UnitPath driver.Path `json:"unit_path,omitempty" jsonschema:"where the result says the unit; another one than unit is then a fault"`
}

type mcpOutput struct {
	mcpPlace
	driver.OutputPoint
	outputWords
	SetTool      string        `json:"set_tool" jsonschema:"the tool that sets it"`
	SetArguments string        `json:"set_arguments" jsonschema:"its arguments as JSON, such as '{\"on\": {value}}'; {value} stands for the value"`
	Renew        time.Duration `json:"renew,omitempty" jsonschema:"how often a value away from safe is set again, for servers that return to safe by themselves; never when not written"`
}

// Validate finds mistakes.
func (c *mcpConfig) Validate() error {
	if err := c.endpoint.Validate(); err != nil {
		return err
	}
	if err := countPoints(len(c.Inputs), len(c.Outputs),
		"soc: { tool: get_state, path: soc, unit: '%', range: 0..100 }"); err != nil {
		return err
	}
	calls := map[mcpCall]bool{}
	place := func(of string, p mcpPlace) error {
		calls[p.call()] = true
		return firstError(checkTool(of+".tool", p.Tool), checkArguments(of+".arguments", p.Arguments),
			p.Path.Validate(of+".path"))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inputs)) {
		i, of := c.Inputs[name], "inputs."+name
		err := firstError(place(of, i.mcpPlace), i.InputPoint.Validate(of), i.UnitPath.Validate(of+".unit_path"))
		if err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Outputs)) {
		o, of := c.Outputs[name], "outputs."+name
		err := firstError(place(of, o.mcpPlace), checkTool(of+".set_tool", o.SetTool), o.OutputPoint.Validate(of),
			o.outputWords.validate(of, o.Point(name)), checkRenew(of, o.Renew))
		if err == nil && !strings.Contains(o.SetArguments, placeholder) {
			err = device.Faultf(device.Invalid, "%s.set_arguments: write where the value is sent, as {value}", of)
		}
		for _, v := range extremes(o.Point(of)) {
			err = firstError(err, checkArguments(of+".set_arguments", o.arguments(v)))
		}
		if err != nil {
			return err
		}
	}
	if len(calls) > maxSources {
		return device.Faultf(device.Invalid,
			"inputs: they are in %d calls; a device has at most %d: make several devices", len(calls), maxSources)
	}
	return c.Describe().Validate()
}

func checkTool(of, name string) error {
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return device.Faultf(device.Invalid, "%s: write the name of a tool, as the server has it", of)
	}
	return nil
}

func checkArguments(of, text string) error {
	if v := jsontext.Value(text); text != "" && (len(text) > maxBody || v.Kind() != '{' || !v.IsValid()) {
		return device.Faultf(device.Invalid,
			"%s: it is no JSON object; write one such as '{\"id\": 1}', with a text for {value} in quotes", of)
	}
	return nil
}

func checkRenew(of string, every time.Duration) error {
	if every != 0 && (every < 2*time.Second || every > time.Hour) {
		return device.Faultf(device.Invalid, "%s.renew: %v is not 2s to 1h", of, every)
	}
	return nil
}

// arguments returns those of the tool that sets o to v.
func (o mcpOutput) arguments(v device.Value) string {
	return strings.ReplaceAll(o.SetArguments, placeholder, o.text(o.Quantity, v))
}

// Describe needs no server.
func (c *mcpConfig) Describe() device.Description {
	return device.Description{Model: "values of an MCP server", Points: driver.Points(c.Outputs, c.Inputs)}
}

// Resources lists the calls that set its outputs.
func (c *mcpConfig) Resources() []driver.Resource {
	var all []driver.Resource
	for _, o := range c.Outputs {
		all = append(all, c.claim(o.SetTool+" "+strings.ReplaceAll(o.SetArguments, placeholder, cmp.Or(o.OnIs, placeholder))))
	}
	return all
}

// Open calls the tools once. A device with outputs is opened also while its server is away.
func (c *mcpConfig) Open(ctx context.Context) (device.Device, error) {
	server, err := c.open()
	if err != nil {
		return nil, err
	}
	tools := &mcpClient{mcpTransport: mcpTransport{client: server}}
	sources := map[mcpCall]*source{}
	at := func(place mcpPlace) *source {
		call := place.call()
		if sources[call] == nil {
			sources[call] = &source{ask: func(ctx context.Context) ([]byte, error) { return tools.ask(ctx, call) }}
		}
		return sources[call]
	}
	var points []*point
	desc := c.Describe()
	for _, described := range desc.Points {
		p := &point{Point: described}
		if o, ok := c.Outputs[p.Name]; ok {
			p.path, p.source, p.step, p.renew = o.Path, at(o.mcpPlace), o.Step, o.Renew
			p.decode = func(raw jsontext.Value) (device.Value, error) { return o.decode(o.OutputPoint, raw) }
			p.set = func(ctx context.Context, v device.Value) error {
				_, err := tools.ask(ctx, mcpCall{o.SetTool, o.arguments(v)})
				return err
			}
		} else {
			i := c.Inputs[p.Name]
			p.path, p.unitPath, p.source, p.decode = i.Path, i.UnitPath, at(i.mcpPlace), i.Decode
		}
		points = append(points, p)
	}
	return opened(ctx, desc, points, tools.Close, len(c.Outputs) > 0)
}

// mcpCall is a call of a tool.
type mcpCall struct{ tool, arguments string }

func (p mcpPlace) call() mcpCall { return mcpCall{p.Tool, p.Arguments} }

// mcpClient calls tools of one server, one call at a time, in a session that it keeps until a call is not answered.
// It offers the server nothing: no sampling, no roots, no elicitation, no stream for messages of the server.
type mcpClient struct {
	mcpTransport
	session *sdk.ClientSession
}

// ask returns the structured result of a tool, or else the text of its result.
func (m *mcpClient) ask(ctx context.Context, call mcpCall) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	m.call.Store(&ctx)
	m.broken.Store(false)
	m.sent.Store(0)
	if m.session == nil {
		transport := &sdk.StreamableClientTransport{
			Endpoint: m.client.base.String(), HTTPClient: &http.Client{Transport: &m.mcpTransport, CheckRedirect: stay},
			MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxAnswer,
		}
		us := &sdk.Implementation{Name: "agentsite", Version: "1"}
		session, err := sdk.NewClient(us, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}}).Connect(ctx,
			transport, nil)
		if err != nil {
			return nil, m.lost(ctx, err, false)
		}
		m.session = session
	}
	params := &sdk.CallToolParams{Name: call.tool}
	if call.arguments != "" {
		params.Arguments = jsontext.Value(call.arguments)
	}
	result, err := m.session.CallTool(ctx, params)
	if err != nil {
		err = m.lost(ctx, err, true)
		m.Close()
		return nil, err
	}
	switch {
	case result.IsError:
		return nil, device.Faultf(device.Offline, "the tool %s failed; look at the log of the server", call.tool)
	case result.StructuredContent != nil:
		return json.Marshal(result.StructuredContent)
	}
	for _, content := range result.Content {
		if text, ok := content.(*sdk.TextContent); ok {
			return []byte(text.Text), nil
		}
	}
	return nil, nil // as of a tool that only does something
}

// lost returns the fault of a call without a result, without the words of the server.
func (m *mcpClient) lost(ctx context.Context, err error, sent bool) error {
	host := m.client.base.Host
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.fault
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && !m.broken.Load() && ctx.Err() == nil {
		return device.Faultf(device.Offline, "%s refuses the call (%d); look at the names of tool and arguments", host,
			wire.Code)
	}
	return m.client.fault(ctx, err, sent)
}

// Close ends the session.
func (m *mcpClient) Close() error {
	if m.session != nil {
		m.session.Close() // an error is of a server that is away
		m.session = nil
	}
	return m.client.Close()
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// mcpTransport is the client for the SDK: it bounds answers, refuses those that the client refuses, and sends nothing
// once the call's context has ended.
type mcpTransport struct {
	client *client
	call   atomic.Pointer[context.Context] // of the current call
	broken atomic.Bool                     // a request of the current call got no answer: no other is sent
	sent   atomic.Int32                    // requests of the current call
}

// maxRequests bounds the requests of one call: those that begin a session, the call itself, and answers to a few
// requests of the server. Else a server could have this process hold thousands of answers that wait to be sent.
const maxRequests = 12

const endTimeout = 500 * time.Millisecond // of the request that ends a session

func (m *mcpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	call, end := *m.call.Load(), func() bool { return true }
	switch {
	case r.Method == http.MethodDelete:
		end = time.AfterFunc(endTimeout, cancel).Stop
	case call.Err() != nil:
		cancel()
		return nil, call.Err()
	case m.broken.Load(), m.sent.Add(1) > maxRequests:
		m.broken.Store(true)
		cancel()
		return nil, errBroken
	default:
		end = context.AfterFunc(call, cancel)
	}
	done := func() { end(); cancel() }
	res, err := m.client.RoundTrip(r.Clone(ctx)) // a RoundTripper does not change its request
	if err != nil {
		m.broken.Store(true)
		done()
		return nil, err
	}
	res.Body = &boundedBody{body: res.Body, left: maxAnswer, done: done}
	switch res.StatusCode {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest: // by which older servers are told
		return res, nil
	}
	if err := m.client.refused(res, 0); err != nil {
		res.Body.Close()
		return nil, &refusedError{err}
	}
	return res, nil
}

// refusedError carries the fault of an answer through the SDK.
type refusedError struct{ fault error }

func (e *refusedError) Error() string { return e.fault.Error() }

// boundedBody is a body of at most so many bytes.
type boundedBody struct {
	body io.ReadCloser
	left int
	done func()
}

var errBroken = errors.New("the server has not answered the request before")

var errTooLong = errors.New("the answer is too long")

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.body.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *boundedBody) Close() error {
	defer b.done()
	return b.body.Close()
}
