package client

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/agents/tools"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Client is an agents.Site: each operation calls the tool that renders it. The far side makes its
// own principal of our evidence, so the principals are not used. Its answers are untrusted data:
// names of points match the name pattern, texts are unchanged.
var _ agents.Site = (*Client)(nil)

// UnexpectedError is the error of an answer that does not match the tool's results. The outcome of
// the call is unknown.
type UnexpectedError struct {
	Tool string
	Err  error
}

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("the site's answer to %s cannot be read: %v", e.Tool, e.Err)
}
func (e *UnexpectedError) Unwrap() error { return e.Err }

// Malformed says that the site's answer is not in the form of our sites.
func (e *UnexpectedError) Malformed() {}

// operate calls a tool with arguments that encode by their json tags, and decodes its
// structured result into out.
func (c *Client) operate(ctx context.Context, tool string, args any, terms agents.Terms, out any) (tools.Result, error) {
	text, err := json.Marshal(args, json.Deterministic(true))
	if err != nil {
		return tools.Result{}, err
	}
	res, err := c.Call(ctx, agents.Principal{}, tools.Call{
		Tool: tool, Args: rpc.RawJSON(text), Terms: terms, Exchange: tools.Exchange{State: terms.Approval},
	})
	if err != nil {
		return res, err
	}
	raw, ok := res.Value.(rpc.Raw)
	if !ok {
		return res, &UnexpectedError{tool, fmt.Errorf("it has no structured result")}
	}
	if err := raw.Decode(out); err != nil {
		return res, &UnexpectedError{tool, err}
	}
	return res, nil
}

func (c *Client) Points(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (out agents.PointList, err error) {
	_, err = c.operate(ctx, agents.OpPoints.Tool(), r, r.Terms, &out)
	return out, err
}

func (c *Client) Read(ctx context.Context, _ agents.Principal, r agents.ReadRequest) (out agents.Readings, err error) {
	_, err = c.operate(ctx, agents.OpRead.Tool(), r, r.Terms, &out)
	return out, err
}

func (c *Client) History(ctx context.Context, _ agents.Principal, r agents.HistoryRequest) (out agents.History, err error) {
	_, err = c.operate(ctx, agents.OpHistory.Tool(), r, r.Terms, &out)
	return out, err
}

func (c *Client) Why(ctx context.Context, _ agents.Principal, r agents.WhyRequest) (out agents.Why, err error) {
	_, err = c.operate(ctx, agents.OpWhy.Tool(), r, r.Terms, &out)
	return out, err
}

func (c *Client) Move(ctx context.Context, _ agents.Principal, r agents.MoveRequest) (out agents.Output, err error) {
	tool, args := tools.OfMove(r)
	_, err = c.operate(ctx, tool, args, r.Terms, &out)
	return out, err
}

func (c *Client) Show(ctx context.Context, _ agents.Principal, r agents.ShowRequest) error {
	_, err := c.operate(ctx, agents.OpShow.Tool(), r, r.Terms, new(struct{}))
	return err
}

// Capture returns the first picture of the answer.
func (c *Client) Capture(ctx context.Context, _ agents.Principal, r agents.CaptureRequest) (out agents.Picture, err error) {
	res, err := c.operate(ctx, agents.OpCapture.Tool(), r, r.Terms, &out)
	if err != nil {
		return out, err
	}
	for _, content := range res.Content {
		if content.Image != nil {
			out.MIME, out.Data, out.Size = content.Image.MIME, content.Image.Data, len(content.Image.Data)
			return out, nil
		}
	}
	return out, &UnexpectedError{agents.OpCapture.Tool(), fmt.Errorf("it has no picture")}
}

// Stop stops a site, or each site of a group.
func (c *Client) Stop(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Stopped], error) {
	return each[agents.Stopped](ctx, c, agents.OpStop, r)
}

// Status returns how a site is, or each site of a group.
func (c *Client) Status(ctx context.Context, _ agents.Principal, r agents.SiteRequest) (agents.Answers[agents.Status], error) {
	return each[agents.Status](ctx, c, agents.OpStatus, r)
}

// each asks an operation that each site of a group answers. The answer of one site stands for itself.
func each[T any](ctx context.Context, c *Client, of agents.Operation, r agents.SiteRequest) (out agents.Answers[T], err error) {
	res, err := c.operate(ctx, of.Tool(), r, r.Terms, &out)
	if err != nil || out.Sites != nil {
		return out, err
	}
	out.Sites = make([]T, 1)
	if err := res.Value.(rpc.Raw).Decode(&out.Sites[0]); err != nil {
		return out, &UnexpectedError{of.Tool(), err}
	}
	return out, nil
}

// maxOffered bounds how many points one site may name for one tool.
const maxOffered = 256

// Offer returns the operations that this client may use, from the tools that the site lists. Of a
// tool that comes twice the first counts. Addresses that do not match the name pattern are left
// out: neither are those of a group taken.
func (c *Client) Offer(ctx context.Context, _ agents.Principal) (*agents.Offer, error) {
	list, err := c.Tools(ctx)
	if err != nil {
		return nil, err
	}
	return offerOf(list), nil
}

func offerOf(list []Tool) *agents.Offer {
	o := new(agents.Offer)
	seen := make(map[string]bool)
	for _, t := range list {
		i := slices.IndexFunc(op.Tools, func(known op.Tool) bool { return known.Name == t.Name })
		if i < 0 || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		switch known := op.Tools[i]; {
		case known.Whole != nil:
			*known.Whole(o) = true
		case known.Points != nil:
			*known.Points(o) = t.enum(known.Of.Field)
		}
	}
	if seen[op.ReadHistory.Name] && o.History == nil { // it lists no points where they are those of read_points
		o.History = o.Read
	}
	return o
}

var addressForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9_-]{1,24}/[a-z0-9_-]{1,24}$`) })

// enum returns the addresses that a tool's schema lists for an argument.
func (t Tool) enum(argument string) (addresses []string) {
	var in struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	var of struct {
		Enum  []string `json:"enum"`
		Items struct {
			Enum []string `json:"enum"`
		} `json:"items"`
	}
	schema, err := t.Input.JSONText()
	if err != nil || json.Unmarshal(schema, &in) != nil || json.Unmarshal(in.Properties[argument], &of) != nil {
		return nil
	}
	for _, a := range append(of.Enum, of.Items.Enum...) {
		if len(addresses) < maxOffered && addressForm().MatchString(a) && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	return addresses
}
