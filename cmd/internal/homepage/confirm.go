package homepage

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"agentsite/agents"
	"agentsite/agents/op"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Act is what only an owner may do. Its texts are those of the page and of the site.
type Act struct {
	Site, Method, Description string
	Key                       string        // the site's; "" where it is not known
	Params                    []byte        // exactly as they will be sent, JSON
	Call                      *acts.Request // the call that it approves or denies; nil for any other
	Change                    *Change       // of the configuration; nil for any other
}

// readable refuses an act of which a person at a terminal cannot read all, because a part that is not shown
// could have anything in it.
func (a *Act) readable() error {
	n := len(a.Params)
	if a.Change != nil {
		n = len(a.Change.Rest)
	}
	if a.Call != nil {
		n += len(a.Call.Who) + len(a.Call.Tool) + len(a.Call.Args) + len(strings.Join(a.Call.Via, ""))
	}
	if n > maxChangeBytes {
		return device.Faultf(device.Invalid, "this is too long to read it at the terminal (%d bytes; %d at most): "+
			"use the command line", n, maxChangeBytes)
	}
	return nil
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

// waiting returns the call whose handle the parameters have, or the wish to sign in: who confirms has to see it.
func (s *site) waiting(ctx context.Context, params []byte) (*acts.Request, error) {
	var handle acts.Name
	if err := json.Unmarshal(params, &handle); err != nil {
		return nil, device.Faultf(device.Invalid, "params: %w", err)
	}
	call, in, err := s.asking(ctx, handle.Name)
	if in != nil {
		call = asCall(in)
	}
	return call, err
}

// asking returns the call with a handle, also one that was refused to a program, or the program that asks to sign in.
func (s *site) asking(ctx context.Context, handle string) (*acts.Request, *acts.SignIn, error) {
	all, err := read[struct {
		Requests []acts.Request `json:"requests"`
		SignIns  []acts.SignIn  `json:"sign_ins"`
		Wishes   []acts.Request `json:"wishes"`
	}](ctx, s, string(acts.RequestsAct), acts.None{}, true)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range append(all.Requests, all.Wishes...) {
		if r.Handle == handle {
			return &r, nil, nil
		}
	}
	for _, in := range all.SignIns {
		if in.Handle == handle {
			return nil, &in, nil
		}
	}
	return nil, nil, errNotWaiting
}

var errNotWaiting = device.Faultf(device.Expired, "no such call or program waits for an answer any more")

// heedsUnconfirmed fails for a site of an older version. It would take the user's key for an owner's approval,
// though no person confirmed the call. The site may be another version each time.
func (s *site) heedsUnconfirmed(ctx context.Context, meta jsontext.Value) error {
	params := rpc.RawJSON(fmt.Appendf(nil, `{"_meta":%s}`, cmp.Or(string(meta), "{}")))
	told, err := read[struct {
		Capabilities struct {
			Extensions struct {
				Unconfirmed *struct{} `json:"agentsite/unconfirmed"`
			} `json:"extensions"`
		} `json:"capabilities"`
	}](ctx, s, discoverMethod, params, false)
	if err == nil && told.Capabilities.Extensions.Unconfirmed == nil {
		err = device.Faultf(device.Denied, "%s has an older version of agentsite, which would take this for an owner's "+
			"approval: update it, or use agentsite set at the terminal", s.own.Name)
	}
	return err
}

// read calls a method that reads. slow is as in call.
func read[T any](ctx context.Context, s *site, method string, params any, slow bool) (v T, err error) {
	r := rpc.Request{ID: s.id(), Method: method, Params: params, Version: rpc.Revision, Repeatable: true}
	answer, err := s.call(ctx, r, slow)
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
