package homepage

import (
	"context"
	"fmt"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// Act is what only an owner may do. Its texts are those of the page and of the site.
type Act struct {
	Site, Method, Description string
	Params                    []byte        // exactly as they will be sent, JSON
	Call                      *acts.Request // the call that it approves or denies; nil for any other
}

// ask returns nil for what only reads. For anything else it waits for the person at the terminal.
func (s *site) ask(ctx context.Context, row op.Row, params []byte) error {
	if row.Effect == agents.Reads {
		return nil
	}
	a := Act{Site: s.own.Name, Method: row.Name, Description: row.Description, Params: params}
	if row.Name == string(acts.ApproveAct) || row.Name == string(acts.DenyAct) {
		var err error
		if a.Call, err = s.waiting(ctx, params); err != nil {
			return err
		}
	}
	return s.confirm(ctx, a)
}

// waiting returns the call whose handle the parameters have: who confirms has to see it.
func (s *site) waiting(ctx context.Context, params []byte) (*acts.Request, error) {
	var handle acts.Name
	if err := json.Unmarshal(params, &handle); err != nil {
		return nil, device.Faultf(device.Invalid, "params: %w", err)
	}
	r := rpc.Request{ID: s.id(), Method: string(acts.RequestsAct), Params: acts.None{}, Version: rpc.Revision}
	answer, err := s.call(ctx, r, true)
	if err != nil {
		return nil, err
	}
	var all struct {
		Requests []acts.Request `json:"requests"`
	}
	text, err := answer.(rpc.Raw).JSONText()
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of calls that wait cannot be read: %w", err)
	}
	for _, r := range all.Requests {
		if r.Handle == handle.Name {
			return &r, nil
		}
	}
	return nil, device.Faultf(device.Expired, "no such call waits for an answer any more")
}
