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

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// call serves a request of JSON-RPC: a tool by its name, or a method of ANP.
func (a server) call(ctx context.Context, c *adapter.Call) (any, error) {
	terms, err := c.Terms()
	if err != nil {
		return nil, err
	}
	var head struct {
		Method string         `json:"method"`
		ID     jsontext.Value `json:"id"`
	}
	if raw, err := rpc.ParseJSON(c.Body()); err == nil {
		_ = raw.Decode(&head) // the dispatcher says what is wrong
	}
	methods := map[string]rpc.Method{
		head.Method:        func(ctx context.Context, r *rpc.Call) (any, error) { return a.tool(ctx, c.Who, r, terms) },
		capabilitiesMethod: func(context.Context, *rpc.Call) (any, error) { return a.capabilities(), nil },
		negotiateMethod:    func(ctx context.Context, r *rpc.Call) (any, error) { return a.negotiate(ctx, c, r.Params) },
	}
	answer := &adapter.Answer{Status: http.StatusAccepted}
	rpc.NewDispatcher(methods).Serve(ctx, &rpc.Incoming{Codec: rpc.JSON, Body: c.Body(), Send: func(o rpc.Outgoing) error {
		answer.Status, answer.Value = http.StatusOK, bytes.Clone(o.Body)
		if o.Err != nil && o.Err.Malformed {
			answer.Status = http.StatusBadRequest
		}
		return nil
	}})
	if answer.Value == nil && head.ID == nil {
		return a.notified(ctx, c.Who, head.Method, terms)
	}
	return answer, nil
}

// notified answers a request without an id. Such a request does nothing, and hears so, but for an
// emergency stop.
func (a server) notified(ctx context.Context, who agents.Principal, method string, t agents.Terms) (any, error) {
	if method != agents.OpStop.Tool() {
		return nil, device.Faultf(device.Invalid, "nothing was done: a request has an id")
	}
	if _, err := a.Tool(ctx, who, method, []byte("{}"), t); err != nil {
		return nil, err
	}
	return &adapter.Answer{Status: http.StatusAccepted}, nil
}

// split takes the terms out of a tool's parameters.
func split(params rpc.Raw, t agents.Terms) (args []byte, terms agents.Terms, err error) {
	var all map[string]jsontext.Value
	if err := params.Decode(&all); err != nil {
		return nil, t, rpc.Errorf(rpc.CodeInvalidParams, "params: send an object with the parameters by their names")
	}
	if raw, ok := all["_meta"]; ok {
		with := struct {
			Approval string `json:"agentsite/approval"`
			agents.Terms
		}{t.Approval, t}
		if err := rpc.RawJSON(raw).Decode(&with); err != nil {
			return nil, t, rpc.Errorf(rpc.CodeInvalidParams, "params: _meta: %v", err)
		}
		t = with.Terms
		t.Approval = with.Approval
		delete(all, "_meta")
	}
	if all == nil {
		return []byte("{}"), t, nil
	}
	args, err = json.Marshal(all, json.Deterministic(true))
	return args, t, err
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

// faultData is the data of an error beside its sentence.
type faultData struct {
	Code      string           `json:"anp_code"`
	Fault     device.FaultKind `json:"fault"`
	Retryable bool             `json:"retryable"`
	// HumanAuthorization is set where the site's owner has to approve the call, and Approval is
	// sent with the same call after that.
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
	data := faultData{Code: "agentsite." + string(f.Kind), Fault: f.Kind, Retryable: f.Kind == device.Busy || f.Kind == device.Offline}
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
