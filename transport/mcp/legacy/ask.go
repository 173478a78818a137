//lint:file-ignore SA1019 older revisions have what the newest deprecates

package legacy

import (
	"context"
	stdjson "encoding/json"
	"time"

	"agentsite/agents/tools"
	"agentsite/device"
	"agentsite/node"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxRounds is how often one call may ask its client.
	maxRounds = 8
	// answerWithin is how long the person behind the client may take.
	answerWithin = 5 * time.Minute
)

// rounds calls do until it needs no more input. In these revisions the server asks
// in the middle of the call, so nothing leaves it and no state has to be sealed.
func (h *host) rounds(ctx context.Context, ss *sdk.ServerSession, do func(tools.Exchange) (*tools.NeedInput, error)) error {
	ex := tools.Exchange{Can: capabilities(ss)}
	for range maxRounds {
		need, err := do(ex)
		if err != nil || need == nil {
			return err
		}
		if need.Elsewhere != "" { // no answer of this client's would do
			return device.Faultf(device.Unavailable, "%s", need.Elsewhere)
		}
		if ex.Answers, err = h.ask(ctx, ss, ex.Can, need.Questions); err != nil {
			return err
		}
		ex.State = need.State
	}
	return device.Faultf(device.Internal, "this asked its client %d times and still needs more", maxRounds)
}

// capabilities returns the capabilities that the client declared in its handshake.
func capabilities(ss *sdk.ServerSession) (can tools.Capabilities) {
	p := ss.InitializeParams()
	if p == nil || p.Capabilities == nil {
		return can
	}
	return tools.Capabilities{
		Elicitation: p.Capabilities.Elicitation != nil,
		Sampling:    p.Capabilities.Sampling != nil,
		Roots:       p.Capabilities.RootsV2 != nil,
	}
}

// ask sends the questions one after the other, because a person may have to answer them. It sends
// none if the client does not support all of them.
func (h *host) ask(ctx context.Context, ss *sdk.ServerSession, can tools.Capabilities, questions []tools.Question) (map[string]tools.Args, error) {
	var lacks tools.Capabilities
	for _, q := range questions {
		switch q.Method {
		case "elicitation/create":
			lacks.Elicitation = lacks.Elicitation || !can.Elicitation
		case "sampling/createMessage":
			lacks.Sampling = lacks.Sampling || !can.Sampling
		case "roots/list":
			lacks.Roots = lacks.Roots || !can.Roots
		default:
			return nil, device.Faultf(device.Internal, "no client can be asked for %s", q.Method)
		}
	}
	if lacks != (tools.Capabilities{}) {
		return nil, &tools.NeedsCapability{Needs: lacks}
	}
	place, err := h.srv.node.Hold(h.who, node.Waits)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answers := make(map[string]tools.Args, len(questions))
	for _, q := range questions {
		var err error
		switch q.Method {
		case "elicitation/create":
			answers[q.Key], err = put(ctx, q, ss.Elicit)
		case "sampling/createMessage":
			answers[q.Key], err = put(ctx, q, ss.CreateMessage)
		case "roots/list":
			answers[q.Key], err = put(ctx, q, ss.ListRoots)
		}
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// put puts one question in the SDK's words and returns the answer in JSON.
func put[P, R any](ctx context.Context, q tools.Question, do func(context.Context, *P) (*R, error)) (tools.Args, error) {
	params := new(P)
	if q.Params != nil {
		text, err := json.Marshal(q.Params)
		if err == nil {
			err = stdjson.Unmarshal(text, params)
		}
		if err != nil {
			return nil, device.Faultf(device.Internal, "a question cannot be put: %w", err)
		}
	}
	res, err := do(ctx, params)
	if err != nil {
		return nil, device.Faultf(device.Unavailable, "the client was asked for %s and did not answer: %w", q.Method, err)
	}
	text, err := stdjson.Marshal(res)
	if err != nil {
		return nil, device.Faultf(device.Internal, "an answer cannot be read: %w", err)
	}
	return answer(text), nil
}
