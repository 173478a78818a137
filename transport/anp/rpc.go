package anp

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"

	"agentsite/agents"
	"agentsite/device"
	"agentsite/transport/adapter"
	"agentsite/transport/fault"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json/jsontext"
)

// call serves a request of JSON-RPC: a tool by its name, or a method of ANP.
func (a server) call(ctx context.Context, c *adapter.Call) (any, error) {
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	answer := new(adapter.Answer)
	d := rpc.Dispatcher{Other: func(ctx context.Context, r *rpc.Call) (any, error) {
		switch r.Method {
		case capabilitiesMethod:
			return a.capabilities(), nil
		case negotiateMethod:
			return a.negotiate(ctx, c, r.Params)
		}
		return a.tool(ctx, c.Who, r, terms)
	}}
	d.Serve(ctx, &rpc.Incoming{Codec: rpc.JSON, Body: c.Body(), Send: func(o rpc.Outgoing) error {
		answer.Status, answer.Value = http.StatusOK, bytes.Clone(o.Body)
		if o.Err != nil && o.Err.Malformed {
			answer.Status = http.StatusBadRequest
		}
		return nil
	}})
	if answer.Value == nil {
		return a.notified(ctx, c, terms)
	}
	return answer, nil
}

// notified answers a notification: a request without an id. It is refused, unless it is an emergency
// stop.
func (a server) notified(ctx context.Context, c *adapter.Call, t agents.Terms) (any, error) {
	var head struct {
		Method string         `json:"method"`
		ID     jsontext.Value `json:"id"`
	}
	_ = rpc.RawJSON(c.Body()).Decode(&head) // the dispatcher has decoded it before
	switch {
	case head.ID != nil: // its caller left
		return nil, ctx.Err()
	case head.Method != agents.OpStop.Tool():
		return nil, device.Faultf(device.Invalid, "nothing was done: a request has an id")
	}
	_, err := a.Tool(ctx, c.Who, head.Method, []byte("{}"), t)
	return &adapter.Answer{Status: http.StatusAccepted}, err
}

// split returns the arguments in a tool's parameters, and t with the terms beside them.
func split(params rpc.Raw, t agents.Terms) (args []byte, terms agents.Terms, err error) {
	var in struct {
		Meta struct {
			Approval string `json:"agentsite/approval"`
			agents.Terms
		} `json:"_meta"`
		//lint:ignore SA5008 an option of the JSON library
		Args jsontext.Value `json:",embed"`
	}
	in.Meta.Terms, in.Meta.Approval = t, t.Approval
	if err := params.Decode(&in); err != nil {
		return nil, t, err
	}
	in.Meta.Terms.Approval = in.Meta.Approval
	if in.Args == nil {
		in.Args = jsontext.Value("{}")
	}
	return in.Args, in.Meta.Terms, nil
}

// tool calls a tool.
func (a server) tool(ctx context.Context, who agents.Principal, r *rpc.Call, t agents.Terms) (any, error) {
	args, t, err := split(r.Params, t)
	if err != nil {
		return nil, err
	}
	v, err := a.Tool(ctx, who, r.Method, args, t)
	if err != nil {
		return nil, asError(err)
	}
	return v, nil
}

// faultData is the data of an error.
type faultData struct {
	Code      string           `json:"anp_code"`
	Fault     device.FaultKind `json:"fault"`
	Retryable bool             `json:"retryable"`
	// HumanAuthorization is set if the site's owner has to approve the call. After that, the caller
	// repeats it with Approval.
	HumanAuthorization bool   `json:"humanAuthorization,omitzero"`
	Approval           string `json:"agentsite/approval,omitzero"`
}

// asError renders the error of an operation.
func asError(err error) error {
	var none adapter.ErrNotFound
	var needs *agents.ApprovalNeeded
	if errors.As(err, &none) {
		return rpc.Errorf(rpc.CodeMethodNotFound, "%s", none)
	}
	f := device.AsFault(err)
	if f.Kind == device.Internal {
		return err // the dispatcher logs it and tells nobody
	}
	out := rpc.Errorf(fault.Code(f.Kind), "%s", f.Msg)
	data := faultData{
		Code: "agentsite." + string(f.Kind), Fault: f.Kind,
		Retryable: f.Kind == device.Busy || f.Kind == device.Offline,
	}
	if errors.As(err, &needs) {
		out.Message = needs.Says
		data.HumanAuthorization, data.Approval = true, needs.State
	}
	out.Data = data
	return out
}

// capabilitiesResult answers anp.get_capabilities.
type capabilitiesResult struct {
	DID              string            `json:"service_did"`
	Profiles         []string          `json:"supported_profiles"`
	SecurityProfiles []string          `json:"supported_security_profiles"`
	ContentTypes     []string          `json:"supported_content_types"`
	Limits           map[string]string `json:"limits"`
}

func (a server) capabilities() capabilitiesResult {
	return capabilitiesResult{
		a.Key.ID().String(), []string{negotiationProfile, rpcProfile}, []string{transportProtected}, []string{jsonType},
		map[string]string{"max_request_bytes": strconv.Itoa(rpc.MaxMessage)},
	}
}
