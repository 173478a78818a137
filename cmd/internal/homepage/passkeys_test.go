package homepage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/transport/passkey/passkeytest"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keyed is a home page with a passkey, whose person at the terminal answers by says: nil is Enter.
type keyed struct {
	*home
	browser *passkeytest.Browser
	says    chan error
	ended   chan error // why questions at the terminal ended without an answer
	running sync.WaitGroup
}

// newKeyed registers a passkey by Enter.
func newKeyed(t *testing.T, sites ...peer.OwnSite) *keyed {
	t.Helper()
	k := &keyed{
		browser: passkeytest.New("agentsite.localhost", "http://"+host, -7), says: make(chan error, 1),
		ended: make(chan error, 16), home: newHome(t, sites...),
	}
	k.wait = func(ctx context.Context) error {
		select {
		case err := <-k.says:
			return err
		case <-ctx.Done():
			k.ended <- context.Cause(ctx)
			return ctx.Err()
		}
	}
	k.says <- nil
	if code := k.add(k.browser); code != 0 {
		t.Fatal("it cannot be registered:", code)
	}
	return k
}

// ask calls a method of passkeys, and returns the code of its error, 0 for a result.
func (k *keyed) ask(method string, params, result any) int {
	k.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		k.t.Fatal(err)
	}
	var answer struct {
		Result any `json:"result"`
		Error  struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	answer.Result = result
	said := k.post(k.t.Context(), homePath, `{"jsonrpc":"2.0","id":1,"method":"passkey/`+method+`","params":`+string(text)+`}`, nil)
	if err := json.Unmarshal([]byte(said), &answer); err != nil {
		k.t.Errorf("%s: %v\n%s", method, err, said)
	}
	return answer.Error.Code
}

// made has a browser make a passkey.
func (k *keyed) made(b *passkeytest.Browser) newPasskeyParams {
	k.t.Helper()
	var asked struct {
		Challenge []byte `json:"challenge"`
		Host      string `json:"host"`
	}
	if code := k.ask("new", none{}, &asked); code != 0 || asked.Host != "agentsite.localhost" {
		k.t.Fatal(code, asked)
	}
	return newPasskeyParams{"Chrome", b.Create(asked.Challenge)}
}

// add makes a passkey and registers it.
func (k *keyed) add(b *passkeytest.Browser) int {
	k.t.Helper()
	return k.ask("add", k.made(b), nil)
}

// pending is an act that waits.
type pending struct {
	offer
	code chan int // of its error, 0 for a result; closed without an answer
}

// begin begins an act that passkeys may confirm.
func (k *keyed) begin(ctx context.Context, path, method, params string) *pending {
	k.t.Helper()
	out, in := io.Pipe()
	p, offers := &pending{code: make(chan int, 1)}, make(chan offer, 1)
	k.running.Go(func() {
		defer in.Close()
		k.post(ctx, path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`, in)
	})
	k.running.Go(func() {
		defer close(p.code)
		for from := jsontext.NewDecoder(out); ; {
			var told struct {
				Params *offer `json:"params"`
				Error  struct {
					Code int `json:"code"`
				} `json:"error"`
			}
			if err := json.UnmarshalDecode(from, &told); err != nil {
				return // the stream has ended
			}
			if told.Params != nil {
				offers <- *told.Params
			} else {
				p.code <- told.Error.Code
			}
		}
	})
	p.offer = <-offers
	return p
}

// confirm confirms an act with what a passkey signs.
func (k *keyed) confirm(p *pending, b *passkeytest.Browser) int {
	k.t.Helper()
	return k.ask("confirm", confirmParams{p.Challenge, b.Get(p.Challenge)}, nil)
}

// sent returns the parameters with which a method reached the site.
func (f *far) sent(method string) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.got {
		if r.Method == method {
			text, _ := json.Marshal(r.Params)
			all = append(all, string(text))
		}
	}
	return all
}

const shedPath = "/at/shed/mcp"

// TestPasskey: a passkey confirms an act once, of which it was told everything, and withdraws the question at the
// terminal.
func TestPasskey(t *testing.T) {
	f := new(far)
	k := newKeyed(t, own("shed", f))
	const params = `{"name":"H"}`
	p := k.begin(t.Context(), shedPath, "owner/approve", params)
	if p.Params != params || p.Site != "shed" || p.Method != "owner/approve" || p.Call == nil || p.Call.Who != "kitchen" ||
		p.Call.Args != `{"on":true}` || p.Host != "agentsite.localhost" || len(p.Passkeys) != 1 || !bytes.Equal(p.Passkeys[0], k.browser.ID) {
		t.Errorf("offered: %+v", p.offer)
	}
	if sent := f.sent("owner/approve"); len(sent) > 0 {
		t.Fatalf("sent before an answer: %q", sent)
	}
	k.browser.Count = 1
	answer := confirmParams{p.Challenge, k.browser.Get(p.Challenge)}
	if code := k.ask("confirm", answer, nil); code != 0 {
		t.Error(code)
	}
	if code := <-p.code; code != 0 {
		t.Error(code)
	}
	if all, err := k.keys.List(); err != nil || len(all) != 1 || all[0].Count != k.browser.Count {
		t.Errorf("kept: %+v %v", all, err)
	}
	if by, ok := errors.AsType[Confirmed](<-k.ended); !ok || by.Passkey != "Chrome" {
		t.Errorf("the terminal was told %+v", by)
	}
	if sent := f.sent("owner/approve"); len(sent) != 1 || sent[0] != params {
		t.Errorf("sent: %q", sent)
	}
	if code := k.ask("confirm", answer, nil); code != 410 {
		t.Errorf("a replay: %d", code)
	}
	// The same act again has another challenge.
	p = k.begin(t.Context(), shedPath, "owner/approve", params)
	if code := k.ask("confirm", confirmParams{p.Challenge, answer.Assertion}, nil); code != 403 {
		t.Errorf("the answer of before: %d", code)
	}
	k.says <- device.Faultf(device.Denied, "no")
	if code := <-p.code; code != 403 || len(f.sent("owner/approve")) != 1 {
		t.Errorf("after a no: %d", code)
	}
	k.running.Wait()
}

// TestPasskeyChange: of a configuration a passkey's page is told the lines that change, as the terminal is, and not
// the whole text; the site gets the text.
func TestPasskeyChange(t *testing.T) {
	const was, text = "site: { name: shed }\n", "site: { name: shed }\ndevices: {}\n"
	f := &far{text: was}
	k := newKeyed(t, own("shed", f))
	known := acts.Digest([]byte(was))
	params := fmt.Sprintf(`{"digest":%q,"text":%q}`, known, text)
	p := k.begin(t.Context(), shedPath, string(acts.ConfigureAct), params)
	if p.Params != `{"digest":"`+known+`"}` || p.Change == nil || p.Change.Digest != acts.Digest([]byte(text)) ||
		!slices.Contains(p.Change.Lines, "+devices: {}") {
		t.Errorf("offered: %+v %+v", p.offer, p.Change)
	}
	if code := k.confirm(p, k.browser); code != 0 {
		t.Error(code)
	}
	if code := <-p.code; code != 0 {
		t.Error(code)
	}
	if sent := f.sent(string(acts.ConfigureAct)); len(sent) != 1 || sent[0] != params {
		t.Errorf("sent: %q", sent)
	}
	k.running.Wait()
}

// TestPasskeyChallenge: a challenge is of exactly one act, also where all else is the same.
func TestPasskeyChallenge(t *testing.T) {
	act := Act{Key: "did:key:z", Site: "shed", Method: "owner/reset", Params: []byte("{}")}
	all := map[string]bool{}
	for _, change := range []func(*Act){
		func(*Act) {}, func(a *Act) { a.Key = "did:key:y" }, func(a *Act) { a.Site = "roof" },
		func(a *Act) { a.Method = "owner/reload" }, func(a *Act) { a.Params = []byte("{ }") },
	} {
		changed := act
		change(&changed)
		all[string((&ask{nonce: "N", act: &changed}).challenge())] = true
	}
	all[string((&ask{nonce: "M", act: &act}).challenge())] = true
	all[string((&ask{nonce: "N"}).challenge())] = true
	if len(all) != 7 {
		t.Errorf("7 acts have %d challenges", len(all))
	}
}

// TestPasskeyRefused: what was signed for another act, site, session or page confirms nothing, nor does another
// passkey.
func TestPasskeyRefused(t *testing.T) {
	shed, roof := new(far), new(far)
	k := newKeyed(t, own("shed", shed), own("roof", roof))
	stranger := passkeytest.New("agentsite.localhost", "http://"+host, -7)
	here, others := k.token, k.signIn(2)
	lent := func(ctx context.Context, p *pending, path, method, params string) int {
		from := k.begin(ctx, path, method, params)
		return k.ask("confirm", confirmParams{p.Challenge, k.browser.Get(from.Challenge)}, nil)
	}
	changed := func(p *pending, change func(*passkeytest.Browser)) int {
		b := *k.browser
		change(&b)
		return k.confirm(p, &b)
	}
	for what, confirm := range map[string]func(context.Context, *pending) int{
		"another act": func(ctx context.Context, p *pending) int {
			return lent(ctx, p, shedPath, "owner/reload", `{"name":"H"}`)
		},
		"other parameters": func(ctx context.Context, p *pending) int {
			return lent(ctx, p, shedPath, "owner/reset", `{"name":"I"}`)
		},
		"another blank": func(ctx context.Context, p *pending) int {
			return lent(ctx, p, shedPath, "owner/reset", `{"name": "H"}`)
		},
		"another site": func(ctx context.Context, p *pending) int {
			return lent(ctx, p, "/at/roof/mcp", "owner/reset", `{"name":"H"}`)
		},
		"the same act again": func(ctx context.Context, p *pending) int {
			return lent(ctx, p, shedPath, "owner/reset", `{"name":"H"}`)
		},
		"another session": func(_ context.Context, p *pending) int {
			k.token = others
			defer func() { k.token = here }()
			return k.confirm(p, k.browser)
		},
		"an unknown passkey": func(_ context.Context, p *pending) int { return k.confirm(p, stranger) },
		"no verified person": func(_ context.Context, p *pending) int {
			return changed(p, func(b *passkeytest.Browser) { b.Flags = 1 })
		},
		"a page of another port": func(_ context.Context, p *pending) int {
			return changed(p, func(b *passkeytest.Browser) { b.Origin = "http://agentsite.localhost:1" })
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		p := k.begin(ctx, shedPath, "owner/reset", `{"name":"H"}`)
		if code := confirm(ctx, p); code == 0 || len(p.code) > 0 {
			t.Errorf("%s confirms it", what)
		}
		cancel()
		k.running.Wait()
	}
	if all := append(shed.got, roof.got...); len(all) > 0 {
		t.Errorf("sent: %+v", all)
	}
	if len(k.asks.all) > 0 {
		t.Errorf("%d challenges are left", len(k.asks.all))
	}
}

// TestPasskeyBesideTerminal: the first answer counts. Without an answer nothing is sent, nor where a session ends.
func TestPasskeyBesideTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(far)
		k := newKeyed(t, own("shed", f))
		begin := func() *pending { return k.begin(t.Context(), shedPath, "owner/reset", `{}`) }
		for says, want := range map[error]int{nil: 0, device.Faultf(device.Denied, "no"): 403} {
			p := begin()
			k.says <- says
			if code := <-p.code; code != want {
				t.Errorf("the terminal says %v: %d", says, code)
			}
			if code := k.confirm(p, k.browser); code != 410 {
				t.Errorf("a passkey after the terminal: %d", code)
			}
		}
		if sent := f.sent("owner/reset"); len(sent) != 1 {
			t.Errorf("sent: %q", sent)
		}
		// Where nobody can answer at the terminal, a passkey can, for some time.
		p := begin()
		k.says <- ErrNoTerminal
		synctest.Wait()
		if code := k.confirm(p, k.browser); code != 0 {
			t.Error(code)
		}
		if code := <-p.code; code != 0 {
			t.Error(code)
		}
		p = begin()
		k.says <- ErrNoTerminal
		time.Sleep(askTime)
		if code := <-p.code; code != 410 {
			t.Errorf("nobody answered: %d", code)
		}
		// A challenge ends before a question at the terminal that waited.
		p = begin()
		time.Sleep(askTime)
		if code := k.confirm(p, k.browser); code != 410 {
			t.Errorf("a late passkey: %d", code)
		}
		k.Close()
		if _, answered := <-p.code; answered {
			t.Error("an act is answered after its session ended")
		}
		if sent := f.sent("owner/reset"); len(sent) != 2 {
			t.Errorf("sent: %q", sent)
		}
		k.running.Wait()
	})
}

// TestAddPasskey: a passkey is kept after Enter, and removed after Enter or a passkey. A challenge makes one.
func TestAddPasskey(t *testing.T) {
	k := newKeyed(t, own("shed", new(far)))
	known := func() (names []string) {
		t.Helper()
		all, err := k.keys.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			names = append(names, p.Name)
		}
		return names
	}
	second := passkeytest.New("agentsite.localhost", "http://"+host, -8)
	k.says <- device.Faultf(device.Denied, "no")
	if code := k.add(second); code != 403 || len(known()) != 1 {
		t.Errorf("after a no: %d, %q", code, known())
	}
	made := k.made(second)
	token := k.token
	k.token = k.signIn(1)
	if code := k.ask("add", made, nil); code != 410 {
		t.Errorf("by another session: %d", code)
	}
	k.token = token
	k.says <- nil
	if code := k.ask("add", made, nil); code != 0 || len(known()) != 2 {
		t.Errorf("after Enter: %d, %q", code, known())
	}
	if code := k.ask("add", made, nil); code != 410 {
		t.Errorf("the same again: %d", code)
	}
	k.made(second)
	if code := k.ask("add", made, nil); code != 403 {
		t.Errorf("for a challenge of before: %d", code)
	}
	k.says <- nil
	if code := k.add(second); code != -32602 || len(known()) != 2 {
		t.Errorf("a known one: %d, %q", code, known())
	}
	id, err := json.Marshal(idParams{second.ID})
	if err != nil {
		t.Fatal(err)
	}
	p := k.begin(t.Context(), homePath, removeMethod, string(id))
	if len(known()) != 2 {
		t.Error("it is removed without an answer")
	}
	if code := k.confirm(p, second); code != 0 || <-p.code != 0 || len(known()) != 1 {
		t.Errorf("%d, %q", code, known())
	}
	if code := k.ask("remove", idParams{second.ID}, nil); code == 0 {
		t.Error("it is removed once more")
	}
	p = k.begin(t.Context(), shedPath, "owner/reset", "{}")
	if code := k.confirm(p, second); code == 0 {
		t.Error("a removed passkey confirms")
	}
	k.says <- nil
	<-p.code
	k.running.Wait()
}

// TestNoPasskey: without a passkey, and for a caller that takes no stream, the terminal alone is asked.
func TestNoPasskey(t *testing.T) {
	f := new(far)
	h := newHome(t, own("shed", f))
	if code := h.call("shed", "owner/reset", "{}"); code != 0 || len(h.acts) != 1 || h.acts[0].Key != "" {
		t.Errorf("%d, %+v", code, h.acts)
	}
	if len(h.asks.all) > 0 {
		t.Error("a challenge waits that nobody can answer")
	}
}
