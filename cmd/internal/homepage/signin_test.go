package homepage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
)

// programSite is a site at which programs sign in.
type programSite struct {
	*phoneSite
	asks   []acts.SignIn
	grants []acts.Granted
	got    []any // what changed something
	denied string
}

func (f *programSite) Call(ctx context.Context, r rpc.Request, note func(string, rpc.Raw)) (rpc.Raw, error) {
	var answer any = acts.None{}
	switch p := r.Params.(type) {
	case acts.AccessParams:
		answer = acts.Access{Site: f.key.ID().String(), Name: "shed", Owners: f.owners, Grants: f.grants, Proof: access.ProveSite(f.key, p.Challenge)}
	case acts.NewSignIn, acts.NewToken:
		f.got = append(f.got, p)
	default:
		switch r.Method {
		case string(acts.RequestsAct):
			answer = map[string]any{"requests": []any{map[string]any{"handle": "CALL", "who": "kitchen", "tool": "set_level", "arguments": nil}}, "sign_ins": f.asks,
				"wishes": []any{map[string]any{"handle": "WISH", "who": "token:claude.1f3a9c00", "tool": "set_level", "client": "Claude"}}}
		case string(acts.DenyAct):
			text, _ := r.Params.(rpc.Raw).JSONText()
			f.denied = string(text)
		}
	}
	text, err := json.Marshal(answer)
	return rpc.RawJSON(text), err
}

// newPrograms returns the page of the owner of a site at which two programs ask to sign in, and one did.
func newPrograms(t *testing.T) (*home, *programSite, identity.Key) {
	t.Helper()
	owner := identity.New()
	p, site := newPhoneSite(owner)
	f := &programSite{phoneSite: p, asks: []acts.SignIn{
		{Handle: "AAAA-2222", Client: "Claude", Host: "claude.ai", Asks: []string{"read", "set"}, From: "192.0.2.7"},
		{Handle: "BBBB-3333", Client: "Cursor", Host: "localhost:8787", Local: true, Asks: []string{"read"}, Replaces: "editor"},
	}, grants: []acts.Granted{{ID: "g", Token: "claude", Client: "Claude", Host: "claude.ai", May: []string{"read *"}}}}
	site.Caller = f
	h := newHome(t, site)
	h.options.User, h.options.Key = owner.ID(), func() (identity.Key, error) { return owner, nil }
	return h, f, owner
}

// ask calls a method of the page, and returns the code of its error, 0 for a result.
func (h *home) ask(method, params string) int {
	h.t.Helper()
	var answer struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	said := h.post(h.t.Context(), homePath, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), nil)
	if err := json.Unmarshal([]byte(said), &answer); err != nil {
		h.t.Errorf("%s: %v\n%s", method, err, said)
	}
	return answer.Error.Code
}

// TestAllowSignIn: the permission that a program gets is exactly what the person confirmed, who sees the code, where it
// returns to and what it asks for, all as the site has them.
func TestAllowSignIn(t *testing.T) {
	for what, tt := range map[string]struct {
		method, params, may, name string
		days                      int
	}{
		"to read":     {signInMethod, `{"site":"shed","handle":"AAAA-2222","may":"read  box/*"}`, "read box", "claude-2", 90},
		"by a name":   {signInMethod, `{"site":"shed","handle":"AAAA-2222","name":"ai","may":"read *, set box max 2m","until":"3d"}`, "read *, set box max 2m", "ai", 3},
		"again":       {signInMethod, `{"site":"shed","handle":"BBBB-3333","may":"read *","until":"never"}`, "read *", "editor", 0},
		"is changed":  {changeMethod, `{"site":"shed","name":"claude","may":"set box max 2m 10/h"}`, "set box max 2m 10/h", "claude", 7},
		"is narrowed": {changeMethod, `{"site":"shed","name":"claude","may":"read box","until":"1d"}`, "read box", "claude", 1},
	} {
		h, f, owner := newPrograms(t)
		h.says = device.Faultf(device.Denied, "no")
		if code := h.ask(tt.method, tt.params); code != 403 || len(f.got) > 0 || len(h.acts) != 1 {
			t.Errorf("%s: after a no: %d, %+v", what, code, f.got)
		}
		h.says = nil
		if code := h.ask(tt.method, tt.params); code != 0 || len(f.got) != 1 {
			t.Errorf("%s: %d, %+v", what, code, f.got)
			continue
		}
		var text []byte
		name, replace := "", false
		switch got := f.got[0].(type) {
		case acts.NewSignIn:
			text, name = got.Grant, got.Name
			if !strings.Contains(tt.params, got.Handle) {
				t.Errorf("%s: it is let in as %+v", what, got)
			}
		case acts.NewToken:
			text, name, replace = got.Grant, got.Name, got.Replace
		}
		g, err := access.ParseGrant(text)
		if err != nil || g.Issuer != owner.ID() || g.Audience() != f.key.ID() || g.Blocks[0].Node != f.key.ID() ||
			access.FormatPermissions(g.Blocks[0].Permissions) != tt.may || name != tt.name || replace != (tt.method == changeMethod) {
			t.Errorf("%s: %s %v %+v", what, name, err, g)
		}
		act := h.acts[1]
		var shown signInGrant
		if err := json.Unmarshal(act.Params, &shown); err != nil || shown.May != tt.may || shown.Name != tt.name || act.Key != f.key.ID().String() {
			t.Errorf("%s: the person confirms %s, %v", what, act.Params, err)
		}
		end := "never"
		if !g.Until().IsZero() {
			end = g.Until().UTC().Format(time.RFC3339)
		}
		if days := int(time.Until(g.Until()).Hours()/24 + .5); shown.Until != end || days != tt.days && tt.days != 0 || (tt.days == 0) != (end == "never") {
			t.Errorf("%s: it ends %v, and the person confirms %s", what, g.Until(), shown.Until)
		}
		if tt.method == changeMethod {
			if shown.Was != "read *" || shown.Client != "Claude" || act.Call != nil {
				t.Errorf("%s: the person confirms %s", what, act.Params)
			}
			continue
		}
		i := slices.IndexFunc(f.asks, func(in acts.SignIn) bool { return in.Handle == shown.Handle })
		if i < 0 || act.Call == nil || act.Call.Who != f.asks[i].Client || !strings.Contains(string(act.Call.Args), f.asks[i].Host) {
			t.Errorf("%s: the person sees %+v", what, act.Call)
		}
	}
}

// TestAllowWarns: the person is warned of a program on the browser's computer.
func TestAllowWarns(t *testing.T) {
	h, _, _ := newPrograms(t)
	for _, handle := range []string{"AAAA-2222", "BBBB-3333"} {
		h.ask(signInMethod, `{"site":"shed","handle":"`+handle+`","may":"read *"}`)
	}
	if len(h.acts) != 2 || h.acts[0].Description == h.acts[1].Description {
		t.Errorf("%+v", h.acts)
	}
}

// TestDenySignIn: who denies a program, or a call that was refused to one, sees it.
func TestDenySignIn(t *testing.T) {
	h, f, _ := newPrograms(t)
	for handle, who := range map[string]string{"BBBB-3333": "Cursor", "WISH": "token:claude.1f3a9c00"} {
		h.acts = nil
		deny := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"owner/deny","params":{"name":%q}}`, handle)
		h.post(t.Context(), "/at/shed/mcp", deny, nil)
		if len(h.acts) != 1 || h.acts[0].Call == nil || h.acts[0].Call.Who != who || !strings.Contains(f.denied, handle) {
			t.Errorf("%+v, and the site got %s", h.acts, f.denied)
		}
	}
}

// TestAllowRefused: nobody is asked about a permission that cannot be read, a site of somebody else's, a code that does
// not wait, a call's handle, or a token that is not there.
func TestAllowRefused(t *testing.T) {
	for what, tt := range map[string]struct {
		method, params string
		change         func(*programSite)
		code           int
	}{
		"no permission":    {signInMethod, `{"site":"shed","handle":"AAAA-2222"}`, nil, rpc.CodeInvalidParams},
		"a mistake":        {signInMethod, `{"site":"shed","handle":"AAAA-2222","may":"fly"}`, nil, rpc.CodeInvalidParams},
		"a past end":       {signInMethod, `{"site":"shed","handle":"AAAA-2222","may":"read *","until":"2020-01-01"}`, nil, rpc.CodeInvalidParams},
		"an unknown site":  {signInMethod, `{"site":"roof","handle":"AAAA-2222","may":"read *"}`, nil, rpc.CodeInvalidParams},
		"another code":     {signInMethod, `{"site":"shed","handle":"CCCC-4444","may":"read *"}`, nil, 410},
		"a call":           {signInMethod, `{"site":"shed","handle":"CALL","may":"read *"}`, nil, 410},
		"another owner":    {signInMethod, `{"site":"shed","handle":"AAAA-2222","may":"read *"}`, func(f *programSite) { f.owners = nil }, 403},
		"no token":         {changeMethod, `{"site":"shed","name":"roof","may":"read *"}`, nil, rpc.CodeInvalidParams},
		"a token without":  {changeMethod, `{"site":"shed","may":"read *"}`, nil, rpc.CodeInvalidParams},
		"a changed fly":    {changeMethod, `{"site":"shed","name":"claude","may":"fly"}`, nil, rpc.CodeInvalidParams},
		"words without it": {permissionMethod, `{"may":"","until":""}`, nil, rpc.CodeInvalidParams},
	} {
		h, f, _ := newPrograms(t)
		if tt.change != nil {
			tt.change(f)
		}
		if code := h.ask(tt.method, tt.params); code != tt.code || len(h.acts)+len(f.got) > 0 {
			t.Errorf("%s: %d, %+v", what, code, h.acts)
		}
	}
}

// TestReadPermission: the parts that a page shows are those that are signed.
func TestReadPermission(t *testing.T) {
	p, err := readPermission(words{"read *, set fan+pump 0..80 max 2m 10/h confirm, use scan on box, stop", "2099-03-01"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p.Parts, json.Deterministic(true))
	const want = `[{"word":"read","tools":["list_points","read_history","read_points","site_status"],"points":["*"]},` +
		`{"word":"set","tools":["release_output","set_level","switch_output"],"points":["fan","pump"],"range":[0,80],"max_seconds":120,"calls":10,"per_seconds":3600,"confirm":true},` +
		`{"word":"use","tools":["scan"],"points":["box"]},{"word":"stop","tools":["emergency_stop"]}]`
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
	end, err := time.Parse(time.RFC3339, p.Until)
	if err != nil || end.Unix() != access.EndSecond(p.end) || end.Year() != 2099 {
		t.Errorf("%s %v", p.Until, p.end)
	}
}
