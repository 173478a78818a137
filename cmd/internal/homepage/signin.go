package homepage

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"agentsite/device"
	"agentsite/node/acts"
	ownerclient "agentsite/transport/owner/client"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

const (
	signInMethod = "sign-in/allow"
	changeMethod = "token/change"
)

// programMethods are the methods for programs that sign in at a site by OAuth.
func (h *Home) programMethods() map[string]rpc.Method {
	return map[string]rpc.Method{
		permissionMethod: method(h.readWords), signInMethod: method(h.allowSignIn), changeMethod: method(h.changeToken),
	}
}

// signInParams are a site, the code of a program that asks to sign in there, and what it may do.
type signInParams struct {
	Site   string `json:"site"`
	Handle string `json:"handle"`
	Name   string `json:"name"` // of its token; "" for one that is made
	words
}

// signInGrant is shown to the person, who confirms it.
type signInGrant struct {
	Handle string `json:"handle,omitzero"`
	Name   string `json:"name"`
	Client string `json:"client,omitzero"`
	Host   string `json:"returns_to,omitzero"`
	Was    string `json:"was,omitzero"`
	words
}

// allowSignIn lets a program sign in with a permission, once the person confirmed both.
func (h *Home) allowSignIn(ctx context.Context, c *rpc.Call, p signInParams) (any, error) {
	may, err := readPermission(p.words)
	if err != nil {
		return nil, err
	}
	s, owner, on, err := h.owned(ctx, p.Site)
	if err != nil {
		return nil, err
	}
	_, asks, err := s.asking(ctx, p.Handle)
	if err != nil {
		return nil, err
	}
	if asks == nil {
		return nil, errNotWaiting
	}
	says := "Let a program sign in with this permission. Refuse it unless your own browser shows exactly this code."
	if asks.Local {
		says += " It returns to a program on that browser's computer, where any program can use this name."
	}
	grant := signInGrant{Handle: asks.Handle, Name: cmp.Or(p.Name, ownerclient.SignInName(on, *asks)), words: may.words}
	if err := h.confirmGrant(ctx, c, s, signInMethod, says, grant, asCall(asks)); err != nil {
		return nil, err
	}
	signed, err := ownerclient.SignToken(on, h.options.Key, grant.Name, grant.May, may.end)
	if err != nil {
		return nil, err
	}
	_, err = ownerclient.Call(ctx, owner, acts.SignInAct,
		acts.NewSignIn{Handle: grant.Handle, Name: grant.Name, Grant: signed.Grant})
	return grant, err
}

// tokenParams are a site, the name of a token there, and what it may do from now on.
type tokenParams struct {
	Site string `json:"site"`
	Name string `json:"name"`
	words
}

// changeToken gives a token another permission, once the person confirmed it.
func (h *Home) changeToken(ctx context.Context, c *rpc.Call, p tokenParams) (any, error) {
	may, err := readPermission(p.words)
	if err != nil {
		return nil, err
	}
	s, owner, on, err := h.owned(ctx, p.Site)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(on.Grants, func(g acts.Granted) bool { return g.Token == p.Name && p.Name != "" })
	if i < 0 {
		return nil, device.Faultf(device.Invalid, "name: the site has no such token")
	}
	was := on.Grants[i]
	grant := signInGrant{
		Name: p.Name, Client: was.Client, Host: was.Host, Was: strings.Join(was.May, "; and "), words: may.words,
	}
	says := "Change what a token may do, from its next call on."
	if err := h.confirmGrant(ctx, c, s, changeMethod, says, grant, nil); err != nil {
		return nil, err
	}
	signed, err := ownerclient.SignToken(on, h.options.Key, grant.Name, grant.May, may.end)
	if err != nil {
		return nil, err
	}
	signed.Replace = true
	_, err = ownerclient.Call(ctx, owner, acts.TokenAct, signed)
	return grant, err
}

// owned returns a site of the user's with a name, and what it tells of permissions.
func (h *Home) owned(ctx context.Context, name string) (s *site, owner *ownerclient.Client, on ownerclient.Access,
	err error) {
	s = h.find(name)
	if s == nil || !s.own.Owner {
		return nil, nil, on, device.Faultf(device.Invalid, "site: you own none of that name")
	}
	if owner, err = s.ownerClient(); err == nil {
		on, err = owner.Access(ctx)
	}
	// A grant would make the user the owner of a site that has none, which nobody confirmed.
	if err == nil && !slices.ContainsFunc(on.Owners, func(o acts.Owner) bool { return o.DID == h.options.User.String() }) {
		err = device.Faultf(device.Denied, "your key is none of the site's owners': claim the site first")
	}
	return s, owner, on, err
}

// confirmGrant has the person confirm what a program may do.
func (h *Home) confirmGrant(ctx context.Context, c *rpc.Call, s *site, method, says string, grant signInGrant,
	call *acts.Request) error {
	params, err := json.Marshal(grant)
	if err != nil {
		return err
	}
	return h.confirm(ctx, c, Act{
		Site: s.own.Name, Key: s.own.Key, Method: method, Description: says, Params: params, Call: call,
	})
}

// asCall returns a program's wish to sign in, in the form of a call that waits.
func asCall(in *acts.SignIn) *acts.Request {
	args, _ := json.Marshal(struct { // it has a form in JSON
		Host     string   `json:"returns_to"`
		Local    bool     `json:"local,omitzero"`
		Asks     []string `json:"asks"`
		From     string   `json:"from"`
		Replaces string   `json:"replaces,omitzero"`
	}{in.Host, in.Local, in.Asks, in.From, in.Replaces})
	return &acts.Request{Handle: in.Handle, Who: in.Client, Tool: "sign-in", Args: args, Left: in.Left}
}
