package homepage

import (
	"cmp"
	"context"
	"errors"

	"agentsite/agents/principal"
	"agentsite/cmd/internal/qr"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/identity"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

const (
	phoneMethod = "phone/add"
	phoneNote   = "notifications/agentsite/phone"
)

// phoneParams are a site and what a phone may do there: a name, and words as of agentsite grant phone, whose
// defaults "" is for.
type phoneParams struct {
	Site string `json:"site"`
	Name string `json:"name"`
	words
	ByAddress bool `json:"by_address"`
}

// phoneLink is for the page only: who opens it first shows its key.
type phoneLink struct {
	Link string   `json:"link"`
	QR   []string `json:"qr"` // rows of squares
}

// phoneGrant is shown to the person, who compares the letters with the phone's and confirms it.
type phoneGrant struct {
	Letters string `json:"letters"`
	Name    string `json:"name"`
	Key     string `json:"key"`
	May     string `json:"may"`
	Until   string `json:"until"`
}

// addPhone grants a permission to the key of the phone that opens the link in the page, once the person
// confirmed it.
func (h *Home) addPhone(ctx context.Context, c *rpc.Call, p phoneParams) (any, error) {
	may, err := readPermission(words{cmp.Or(p.May, ownerclient.PhoneWords), cmp.Or(p.Until, ownerclient.PhoneUntil)})
	if err != nil {
		return nil, err
	}
	s, owner, on, err := h.owned(ctx, p.Site)
	if err != nil {
		return nil, err
	}
	grant := phoneGrant{May: may.May, Until: may.Until}
	signed, _, _, err := owner.SignPhone(ctx, on, ownerclient.Phone{
		Name: p.Name, Words: grant.May, Until: may.end, ByAddress: p.ByAddress, Key: h.options.Key,
		Show: func(link string) error { return c.Notify(phoneNote, phoneLink{link, qr.Rows(link)}) },
		Confirm: func(ctx context.Context, key ownerclient.PhoneKey) error {
			grant.Letters, grant.Name, grant.Key = key.Letters, key.Name, key.DID
			if err := c.Notify(phoneNote, grant); err != nil {
				return err
			}
			params, err := json.Marshal(grant)
			if err != nil {
				return err
			}
			return h.confirm(ctx, c, Act{
				Site: s.own.Name, Key: s.own.Key, Method: phoneMethod, Params: params,
				Description: "Let a phone use the site. Refuse it unless your phone shows exactly these letters.",
			})
		},
	})
	if err != nil {
		return nil, err
	}
	_, err = ownerclient.Call(ctx, owner, acts.GrantAct, signed)
	return grant, err
}

// ownerClient calls the site's methods for owners.
func (s *site) ownerClient() (*ownerclient.Client, error) {
	if s.own.You == principal.LocalID { // the site proves its key, which a socket does not verify
		return ownerclient.New(s, identity.ID{}, s.own.Name), nil
	}
	key, err := identity.Parse(s.own.Key)
	return ownerclient.New(s, key, s.own.Name), err
}

// CallMethod implements ownerclient.Caller.
func (s *site) CallMethod(ctx context.Context, method string, params any) ([]byte, error) {
	if method != string(acts.PhoneAct) { // which waits for a phone
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	r := rpc.Request{ID: s.id(), Method: method, Params: params, Version: rpc.Revision}
	answer, err := s.own.Caller.Call(ctx, r, nil)
	if theirs, ok := errors.AsType[*rpc.Error](err); ok && theirs.Code == rpc.CodeMethodNotFound {
		return nil, device.Faultf(device.Unavailable, "%s has no %s for you: it has an older version of agentsite, "+
			"or you own it no more", s.own.Name, method)
	}
	if err != nil {
		return nil, refusal(err)
	}
	return answer.JSONText()
}
