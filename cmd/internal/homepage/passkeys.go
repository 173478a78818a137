package homepage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/transport/passkey"
	"agentsite/transport/rpc"
	"agentsite/transport/web"

	"github.com/go-json-experiment/json"
)

const (
	addMethod    = "passkey/add"
	removeMethod = "passkey/remove"

	askTime     = 2 * time.Minute
	maxAsks     = 8 // challenges that wait
	maxPasskeys = 16
	maxName     = 60 // bytes

	actDomain      = "agentsite owner's act 1"
	registerDomain = "agentsite passkey 1"
)

// ask is a challenge that was given to a session: for an act, or for a new passkey.
type ask struct {
	session string
	nonce   string
	act     *Act              // nil for a new passkey
	yes     chan peer.Passkey // takes the passkey that confirmed the act
	until   time.Time
}

// challenge returns the bytes that a passkey has to sign, of exactly what the act will send.
func (a *ask) challenge() []byte {
	if a.act == nil {
		return passkey.Challenge(registerDomain, []byte(a.nonce))
	}
	of := a.act
	return passkey.Challenge(actDomain, []byte(a.nonce), []byte(of.Key), []byte(of.Site), []byte(of.Method), of.Params)
}

// wait waits for a passkey.
func (a *ask) wait(ctx context.Context) error {
	select {
	case <-a.yes:
		return nil
	case <-time.After(time.Until(a.until)):
		return device.Faultf(device.Expired, "nobody confirmed it by a passkey within %v", askTime)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// asks are the challenges that wait. The methods are safe for concurrent use.
type asks struct {
	mu  sync.Mutex
	all []*ask
}

// begin makes a challenge for a session; done withdraws it. A session has one at a time for a new passkey.
func (s *asks) begin(session string, act *Act) (a *ask, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.all = slices.DeleteFunc(s.all, func(a *ask) bool {
		return !now.Before(a.until) || act == nil && a.act == nil && a.session == session
	})
	if len(s.all) >= maxAsks {
		return nil, nil, device.Faultf(device.Busy, "too many questions wait for a passkey")
	}
	a = &ask{session, rand.Text(), act, make(chan peer.Passkey, 1), now.Add(askTime)}
	s.all = append(s.all, a)
	return a, func() { s.take(func(b *ask) bool { return a == b }) }, nil
}

// take returns the challenge that is the one, nil for none, which does not count again.
func (s *asks) take(is func(*ask) bool) (a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.all, is); i >= 0 {
		a = s.all[i]
		s.all = slices.Delete(s.all, i, i+1)
	}
	if a == nil || !time.Now().Before(a.until) {
		return nil
	}
	return a
}

// sessionKey is the key of a context's value with the token of the session that calls.
type sessionKey struct{}

func withSession(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), sessionKey{}, web.Bearer(r)))
}

func sessionOf(ctx context.Context) string {
	session, _ := ctx.Value(sessionKey{}).(string)
	return session
}

// Confirmed is the cause by which a question at the terminal ends that a passkey answered.
type Confirmed struct{ Passkey string }

func (c Confirmed) Error() string { return "Allowed in the page, by the passkey " + c.Passkey + "." }

// ErrNoTerminal says that nobody can answer at the terminal.
var ErrNoTerminal = device.Faultf(device.Denied,
	"an owner confirms this in the terminal where agentsite open runs, and its input has ended")

// confirm waits for the person to confirm an act: at the terminal or, where there are passkeys, by one of them.
// The first answer counts.
func (h *Home) confirm(ctx context.Context, c *rpc.Call, act Act) error {
	if err := act.readable(); err != nil {
		return err
	}
	offered, withdraw := h.offer(ctx, c, &act)
	if offered == nil {
		return h.options.Confirm(ctx, act)
	}
	defer withdraw()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	said := make(chan error, 1)
	go func() { said <- h.options.Confirm(ctx, act) }()
	select {
	case err := <-said:
		if errors.Is(err, ErrNoTerminal) {
			return offered.wait(ctx)
		}
		return err
	case by := <-offered.yes:
		cancel(Confirmed{by.Name})
		<-said
		return nil
	}
}

// offer tells the caller of an act by which passkeys it may be confirmed, before the answer to the call. It
// returns nil where there are none, and where the caller takes no stream.
func (h *Home) offer(ctx context.Context, c *rpc.Call, act *Act) (*ask, func()) {
	all, err := h.options.Passkeys.List()
	if err != nil || len(all) == 0 {
		return nil, nil
	}
	a, withdraw, err := h.asks.begin(sessionOf(ctx), act)
	if err != nil {
		return nil, nil
	}
	told := offer{
		Challenge: a.challenge(), Host: h.host, Site: act.Site, Method: act.Method, Description: act.Description,
		Params: string(act.Params),
	}
	if act.Call != nil {
		told.Call = &calls{act.Call.Who, act.Call.Tool, string(act.Call.Args), act.Call.Via}
	}
	if act.Change != nil {
		told.Params = string(act.Change.Rest)
		told.Change = &changes{act.Change.Lines, act.Change.Digest}
	}
	for _, p := range all {
		told.Passkeys = append(told.Passkeys, p.ID)
	}
	if c.Notify("notifications/agentsite/confirm", told) != nil {
		withdraw()
		return nil, nil
	}
	return a, withdraw
}

// offer has what a page needs to ask a passkey, and what it shows before: exactly what is confirmed.
type offer struct {
	Challenge   []byte   `json:"challenge"`
	Host        string   `json:"host"`
	Passkeys    [][]byte `json:"passkeys"`
	Site        string   `json:"site"`
	Method      string   `json:"method"`
	Description string   `json:"description"`
	Params      string   `json:"params"` // without the text of a configuration
	Call        *calls   `json:"call,omitzero"`
	Change      *changes `json:"change,omitzero"`
}

// changes are the lines of the configuration that an act changes, and the digest of the new text, as the
// terminal shows them.
type changes struct {
	Lines  []string `json:"lines"`
	Digest string   `json:"digest"`
}

// calls is the call that an act approves or denies, in the site's words.
type calls struct {
	Who  string   `json:"who"`
	Tool string   `json:"tool"`
	Args string   `json:"arguments"`
	Via  []string `json:"via,omitzero"`
}

// passkeyMethods are the methods of passkeys for the page.
func (h *Home) passkeyMethods() map[string]rpc.Method {
	return map[string]rpc.Method{
		"passkey/list": method(h.listPasskeys), "passkey/new": method(h.newPasskey), addMethod: method(h.addPasskey),
		"passkey/confirm": method(h.confirmBy), removeMethod: method(h.removePasskey),
	}
}

type none struct{}

type listedPasskey struct {
	ID    []byte    `json:"id"`
	Name  string    `json:"name"`
	Added time.Time `json:"added,omitzero"`
}

func (h *Home) listPasskeys(context.Context, *rpc.Call, none) (any, error) {
	all, err := h.options.Passkeys.List()
	list := make([]listedPasskey, 0, len(all))
	for _, p := range all {
		list = append(list, listedPasskey{p.ID, p.Name, p.Added})
	}
	return map[string]any{"passkeys": list}, err
}

// newPasskey returns what a browser needs to create a passkey.
func (h *Home) newPasskey(ctx context.Context, _ *rpc.Call, _ none) (any, error) {
	all, err := h.options.Passkeys.List()
	if err != nil {
		return nil, err
	}
	a, _, err := h.asks.begin(sessionOf(ctx), nil)
	if err != nil {
		return nil, err
	}
	did := h.options.User.String()
	user := sha256.Sum256([]byte(did))
	known := make([][]byte, 0, len(all))
	for _, p := range all {
		known = append(known, p.ID)
	}
	return map[string]any{
		"challenge": a.challenge(), "host": h.host, "user": user[:], "name": did, "algorithms": passkey.Algorithms(),
		"known": known,
	}, nil
}

// newPasskeyParams are a new passkey and its name.
type newPasskeyParams struct {
	Name string `json:"name"`
	passkey.Registration
}

// addPasskey keeps a new passkey, after the person at the terminal has confirmed it: a program that drives the
// browser can create one, too.
func (h *Home) addPasskey(ctx context.Context, _ *rpc.Call, p newPasskeyParams) (any, error) {
	session := sessionOf(ctx)
	a := h.asks.take(func(a *ask) bool { return a.act == nil && a.session == session })
	if a == nil {
		return nil, errNoAsk
	}
	made, err := passkey.Register(h.expected(a), p.Registration)
	if err != nil {
		return nil, device.Faultf(device.Denied, "the passkey: %w", err)
	}
	name := strings.TrimSpace(strings.ToValidUTF8(p.Name[:min(len(p.Name), maxName)], ""))
	if name == "" {
		return nil, device.Faultf(device.Invalid, "a passkey needs a name")
	}
	shown, err := json.Marshal(listedPasskey{ID: made.ID, Name: name})
	if err != nil {
		return nil, err
	}
	err = h.options.Confirm(ctx, Act{
		Site: allSites, Method: addMethod, Params: shown,
		Description: "Accept a new passkey, which from then on confirms owner's acts in the page in place of Enter. " +
			"Refuse it unless you made it yourself, just now.",
	})
	if err != nil {
		return nil, err
	}
	return none{}, h.options.Passkeys.Change(func(all []peer.Passkey) ([]peer.Passkey, error) {
		switch {
		case indexOf(all, made.ID) >= 0:
			return nil, device.Faultf(device.Invalid, "this passkey is registered already")
		case len(all) >= maxPasskeys:
			return nil, device.Faultf(device.Denied, "there are %d passkeys: remove one first", len(all))
		}
		return append(all, peer.Passkey{Name: name, Added: time.Now().UTC().Truncate(time.Second), Credential: made}), nil
	})
}

// allSites stands for the site in acts on the page itself.
const allSites = "the page of all your sites"

// idParams names a passkey.
type idParams struct {
	ID []byte `json:"id"`
}

func (h *Home) removePasskey(ctx context.Context, c *rpc.Call, p idParams) (any, error) {
	all, err := h.options.Passkeys.List()
	if err != nil {
		return nil, err
	}
	i := indexOf(all, p.ID)
	if i < 0 {
		return nil, errNoPasskey
	}
	shown, err := json.Marshal(listedPasskey{p.ID, all[i].Name, all[i].Added})
	if err != nil {
		return nil, err
	}
	err = h.confirm(ctx, c, Act{
		Site: allSites, Method: removeMethod, Params: shown,
		Description: "Remove a passkey, which confirms nothing any more.",
	})
	if err != nil {
		return nil, err
	}
	return none{}, h.options.Passkeys.Change(func(all []peer.Passkey) ([]peer.Passkey, error) {
		i := indexOf(all, p.ID)
		if i < 0 {
			return nil, errNoPasskey
		}
		return slices.Delete(all, i, i+1), nil
	})
}

// confirmParams are a passkey's answer to the challenge of an act.
type confirmParams struct {
	Challenge []byte `json:"challenge"`
	passkey.Assertion
}

// confirmBy confirms the act whose challenge was signed, which waits in another call of the same session. A
// challenge counts once, also where the answer is wrong.
func (h *Home) confirmBy(ctx context.Context, _ *rpc.Call, p confirmParams) (any, error) {
	session := sessionOf(ctx)
	a := h.asks.take(func(a *ask) bool {
		return a.act != nil && a.session == session && slices.Equal(a.challenge(), p.Challenge)
	})
	if a == nil {
		return nil, errNoAsk
	}
	var by peer.Passkey
	err := h.options.Passkeys.Change(func(all []peer.Passkey) (_ []peer.Passkey, err error) {
		i := indexOf(all, p.ID)
		if i < 0 {
			return nil, errNoPasskey
		}
		if all[i].Credential, err = all[i].Verify(h.expected(a), p.Assertion); err != nil {
			return nil, device.Faultf(device.Denied, "the passkey: %w", err)
		}
		by = all[i]
		return all, nil
	})
	if err != nil {
		return nil, err
	}
	a.yes <- by
	return none{}, nil
}

func (h *Home) expected(a *ask) passkey.Expected {
	return passkey.Expected{Host: h.host, Origin: h.options.Origin, Challenge: a.challenge()}
}

func indexOf(all []peer.Passkey, id []byte) int {
	return slices.IndexFunc(all, func(p peer.Passkey) bool { return len(id) > 0 && slices.Equal(p.ID, id) })
}

var (
	errNoAsk     = device.Faultf(device.Expired, "nothing waits for this passkey any more: ask again")
	errNoPasskey = device.Faultf(device.Invalid, "this passkey is not registered here")
)
