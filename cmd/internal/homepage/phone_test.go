package homepage

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/agents/principal"
	"agentsite/cmd/internal/peer"
	"agentsite/cmd/internal/qr"
	"agentsite/device"
	"agentsite/node/access"
	"agentsite/node/acts"
	"agentsite/node/identity"
	"agentsite/transport/rpc"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// phoneSite is a site that lets phones in.
type phoneSite struct {
	key     identity.Key
	owners  []acts.Owner
	at      []string
	fails   error         // of owner/phone
	code    chan string   // takes the code of a phone that is awaited
	shows   chan string   // the key that shows it
	ended   chan struct{} // has a value where nobody waits for a phone any more
	granted [][]byte
}

func (f *phoneSite) Call(ctx context.Context, r rpc.Request, _ func(string, rpc.Raw)) (rpc.Raw, error) {
	var answer any = acts.None{}
	switch p := r.Params.(type) {
	case acts.AccessParams:
		answer = acts.Access{Site: f.key.ID().String(), Name: "shed", At: f.at, Owners: f.owners,
			Proof: access.ProveSite(f.key, p.Challenge)}
	case acts.Name:
		if f.fails != nil {
			return rpc.Raw{}, f.fails
		}
		f.code <- p.Name
		select {
		case did := <-f.shows:
			answer = acts.PhoneKey{DID: did, Name: "chrome-on-android"}
		case <-ctx.Done():
			f.ended <- struct{}{}
			return rpc.Raw{}, ctx.Err()
		}
	case acts.Signed:
		f.granted = append(f.granted, p.Grant)
	}
	text, err := json.Marshal(answer)
	return rpc.RawJSON(text), err
}

// newPhoneSite returns a site of the owner, which a carrier reaches.
func newPhoneSite(owner identity.Key) (*phoneSite, peer.OwnSite) {
	f := &phoneSite{key: identity.New(), owners: []acts.Owner{{DID: owner.ID().String()}},
		at:   []string{"192.0.2.1:8474", "agentsite-k5qjb3xz.local:8474", "/ip4/192.0.2.1/tcp/1"},
		code: make(chan string, 1), shows: make(chan string, 1), ended: make(chan struct{}, 1)}
	s := own("shed", nil)
	s.Caller, s.Key = f, f.key.ID().String()
	return f, s
}

// phoneCall holds the notifications of a phone that the page got.
type phoneCall struct {
	Method string `json:"method"`
	Params struct {
		phoneLink
		phoneGrant
		Challenge []byte `json:"challenge"`
	} `json:"params"`
	Result *phoneGrant `json:"result"`
	Error  struct {
		Code int `json:"code"`
	} `json:"error"`
}

// addPhone calls phone/add until ctx ends, and returns what the page is told, one after another.
func (k *keyed) addPhone(ctx context.Context, params string) func() phoneCall {
	out, in := io.Pipe()
	k.running.Go(func() {
		defer in.Close()
		k.post(ctx, homePath, `{"jsonrpc":"2.0","id":1,"method":"phone/add","params":`+params+`}`, in)
	})
	from := jsontext.NewDecoder(out)
	return func() (told phoneCall) {
		json.UnmarshalDecode(from, &told) // zero where the stream has ended
		return told
	}
}

// TestAddPhone: the key that showed the link's code is granted exactly what the person confirmed, by Enter or by a
// passkey, who sees the letters and not the link. Without them nothing is granted.
func TestAddPhone(t *testing.T) {
	owner := identity.New()
	f, remote := newPhoneSite(owner)
	local := remote // the same by its socket
	local.Name, local.Key, local.You = "here", "", principal.LocalID
	k := newKeyed(t, remote, local)
	k.options.User, k.options.Key = owner.ID(), func() (identity.Key, error) { return owner, nil }
	var act Act
	confirm := k.options.Confirm
	k.options.Confirm = func(ctx context.Context, a Act) error { act = a; return confirm(ctx, a) }
	for what, tt := range map[string]struct {
		params, name, may string
		days              int
		passkey           bool
		says              error
		code              int
	}{
		"Enter": {`{"site":"shed"}`, "chrome-on-android", "read *, set *, stop", 90, false, nil, 0},
		"a passkey": {`{"site":"shed","name":"anna","may":"read *","until":"30d","by_address":true}`, "anna", "read *", 30, true,
			nil, 0},
		"without an end": {`{"site":"here","until":"never"}`, "chrome-on-android", "read *, set *, stop", 0, false, nil, 0},
		"a no":           {`{"site":"shed"}`, "chrome-on-android", "", 0, false, device.Faultf(device.Denied, "no"), 403},
	} {
		phone := identity.New().ID()
		f.granted = nil
		next := k.addPhone(t.Context(), tt.params)
		told, code := next(), <-f.code
		at := f.at[1]
		if tt.passkey {
			at = f.at[0]
		}
		if link := told.Params.Link; link != "https://"+at+"/#k="+code ||
			!slices.Equal(told.Params.QR, qr.Rows(link)) || told.Params.QR == nil {
			t.Fatalf("%s: %+v", what, told)
		}
		f.shows <- phone.String()
		told = next()
		grant := told.Params.phoneGrant
		if grant.Letters != phone.Short() || grant.Key != phone.String() || grant.Name != tt.name ||
			told.Params.Link != "" {
			t.Errorf("%s: %+v", what, told)
		}
		challenge := next().Params.Challenge
		if tt.passkey {
			k.ask("confirm", confirmParams{challenge, k.browser.Get(challenge)}, nil)
		} else {
			k.says <- tt.says
		}
		told = next()
		if told.Error.Code != tt.code || (told.Result == nil) != (tt.code != 0) {
			t.Errorf("%s: %+v", what, told)
		}
		var shown phoneGrant
		if err := json.Unmarshal(act.Params, &shown); err != nil || shown != grant || act.Site != "here" && act.Key != remote.Key ||
			act.Method != phoneMethod || strings.Contains(string(act.Params)+act.Description, code) {
			t.Errorf("%s: the person confirms %+v, %v", what, act, err)
		}
		if tt.code != 0 {
			if len(f.granted) > 0 {
				t.Errorf("%s: it is granted something", what)
			}
			continue
		}
		if len(f.granted) != 1 {
			t.Fatalf("%s: %d grants", what, len(f.granted))
		}
		g, err := access.ParseGrant(f.granted[0])
		if err != nil || g.Issuer != owner.ID() || g.Audience() != phone || g.HolderName() != tt.name || g.Blocks[0].Node != f.key.ID() ||
			access.FormatPermissions(g.Blocks[0].Permissions) != tt.may || shown.May != tt.may {
			t.Errorf("%s: %v, %+v", what, err, g)
		}
		end := "never"
		if !g.Until().IsZero() {
			end = g.Until().UTC().Format(time.RFC3339)
		}
		if days := int(time.Until(g.Until()).Hours()/24 + .5); shown.Until != end || days != tt.days && tt.days != 0 {
			t.Errorf("%s: it ends %s, and the person confirms %s", what, end, shown.Until)
		}
	}
	// A page that goes away gives up the code.
	ctx, cancel := context.WithCancel(t.Context())
	next := k.addPhone(ctx, `{"site":"shed"}`)
	next()
	<-f.code
	cancel()
	<-f.ended
	k.running.Wait()
}

// TestAddPhoneRefused: nobody is asked, and nothing is granted, where a permission cannot be read, the site is not
// the user's or does not let phones in, no phone comes, and where an owner's own key comes.
func TestAddPhoneRefused(t *testing.T) {
	owner := identity.New()
	const params = `{"site":"shed"}`
	older := rpc.Errorf(rpc.CodeMethodNotFound, "")
	unowned := func(f *phoneSite, s *peer.OwnSite) { f.owners, s.You = nil, principal.LocalID }
	for what, tt := range map[string]struct {
		params string
		change func(*phoneSite, *peer.OwnSite)
		code   int
	}{
		"a mistake":        {`{"site":"shed","may":"read"}`, nil, rpc.CodeInvalidParams},
		"no name":          {`{"site":"shed","name":"Anna's"}`, nil, rpc.CodeInvalidParams},
		"a wrong end":      {`{"site":"shed","until":"soon"}`, nil, rpc.CodeInvalidParams},
		"an unknown site":  {`{"site":"roof"}`, nil, rpc.CodeInvalidParams},
		"another's site":   {params, func(_ *phoneSite, s *peer.OwnSite) { s.Owner = false }, rpc.CodeInvalidParams},
		"no owner":         {params, unowned, 403},
		"another owner":    {params, func(f *phoneSite, s *peer.OwnSite) { f.owners[0].DID = s.Key }, 403},
		"another key":      {params, func(_ *phoneSite, s *peer.OwnSite) { s.Key = owner.ID().String() }, 503},
		"no HTTPS":         {params, func(f *phoneSite, _ *peer.OwnSite) { f.at = f.at[2:] }, 503},
		"an older site":    {params, func(f *phoneSite, _ *peer.OwnSite) { f.fails = older }, 503},
		"no phone":         {params, func(f *phoneSite, _ *peer.OwnSite) { f.fails = rpc.Errorf(410, "") }, 410},
		"an owner's key":   {params, func(f *phoneSite, _ *peer.OwnSite) { f.shows <- owner.ID().String() }, 503},
		"what is no phone": {params, func(f *phoneSite, _ *peer.OwnSite) { f.shows <- "did:key:z" }, 503},
	} {
		f, s := newPhoneSite(owner)
		if tt.change != nil {
			tt.change(f, &s)
		}
		k := newKeyed(t, s)
		k.options.User, k.options.Key = owner.ID(), func() (identity.Key, error) { return owner, nil }
		next := k.addPhone(t.Context(), tt.params)
		told := next()
		if told.Params.Link != "" {
			told = next()
		}
		if told.Error.Code != tt.code || len(f.granted) > 0 {
			t.Errorf("%s: %+v", what, told)
		}
		k.running.Wait()
	}
}
