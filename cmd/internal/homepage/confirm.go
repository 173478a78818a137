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
	Key                       string        // the site's; "" where it is not known
	Params                    []byte        // exactly as they will be sent, JSON
	Call                      *acts.Request // the call that it approves or denies; nil for any other
	Change                    *Change       // of the configuration; nil for any other
}

// ask returns nil for what only reads. For anything else it waits for the person.
func (s *site) ask(ctx context.Context, c *rpc.Call, row op.Row, params []byte) error {
	if row.Effect == agents.Reads {
		return nil
	}
	a := Act{Site: s.own.Name, Key: s.own.Key, Method: row.Name, Description: row.Description, Params: params}
	var err error
	switch row.Name {
	case string(acts.ApproveAct), string(acts.DenyAct):
		a.Call, err = s.waiting(ctx, params)
	case string(acts.ConfigureAct):
		a.Change, err = s.change(ctx, params)
	}
	if err != nil {
		return err
	}
	return s.confirm(ctx, c, a)
}

// waiting returns the call whose handle the parameters have: who confirms has to see it.
func (s *site) waiting(ctx context.Context, params []byte) (*acts.Request, error) {
	var handle acts.Name
	if err := json.Unmarshal(params, &handle); err != nil {
		return nil, device.Faultf(device.Invalid, "params: %w", err)
	}
	all, err := read[struct {
		Requests []acts.Request `json:"requests"`
	}](ctx, s, string(acts.RequestsAct))
	if err != nil {
		return nil, err
	}
	for _, r := range all.Requests {
		if r.Handle == handle.Name {
			return &r, nil
		}
	}
	return nil, device.Faultf(device.Expired, "no such call waits for an answer any more")
}

// read calls an operation of owners that has no parameters.
func read[T any](ctx context.Context, s *site, method string) (v T, err error) {
	r := rpc.Request{ID: s.id(), Method: method, Params: acts.None{}, Version: rpc.Revision}
	answer, err := s.call(ctx, r, true)
	if err != nil {
		return v, err
	}
	text, err := answer.(rpc.Raw).JSONText()
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return v, fmt.Errorf("the answer to %s cannot be read: %w", method, err)
	}
	return v, nil
}
