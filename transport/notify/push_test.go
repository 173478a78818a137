package notify

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agentsite/node/occurrence"
	"agentsite/node/outbox"
	"agentsite/node/push"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
)

func raw(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64url.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPushExample: the example of RFC 8291, section 5 and appendix A.
func TestPushExample(t *testing.T) {
	own, err := ecdh.P256().NewPrivateKey(raw(t, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	public, auth, err := push.Keys{
		P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
		Auth:   "BTBZMqHH6r4Tts7J_aSIgg",
	}.Decode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := encryptWith(own, raw(t, "DGv6ra1nlYgDCS1FRnbzlw"), public, auth,
		[]byte("When I grow up, I want to be a watermelon"))
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_" +
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if err != nil || base64url.EncodeToString(got) != want {
		t.Errorf("%s, %v", base64url.EncodeToString(got), err)
	}
	if _, err := encryptWith(own, make([]byte, 16), public, auth, make([]byte, recordSize)); err == nil {
		t.Error("a message of two records is sent")
	}
}

// permit verifies an Authorization of RFC 8292 and returns its claims and its key.
func permit(t *testing.T, header string) (aud, sub string, expires time.Time, key string) {
	t.Helper()
	token, k, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ",")
	key = strings.TrimPrefix(strings.TrimSpace(k), "k=")
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		t.Fatal(header)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw(t, key))
	if err != nil {
		t.Fatal(err)
	}
	sum, signature := sha256.Sum256([]byte(parts[0]+"."+parts[1])), raw(t, parts[2])
	if len(signature) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Errorf("the signature of %s is wrong", header)
	}
	var head, claims struct {
		Alg, Aud, Sub string
		Exp           int64
	}
	for i, into := range []any{&head, &claims} {
		if err := json.Unmarshal(raw(t, parts[i]), into, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
	}
	if head.Alg != "ES256" {
		t.Error(head)
	}
	return claims.Aud, claims.Sub, time.Unix(claims.Exp, 0), key
}

// TestVAPID: permits are such as the example of RFC 8292, section 2.4.
func TestVAPID(t *testing.T) {
	const example = "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0." +
		"i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA, " +
		"k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
	if aud, sub, _, _ := permit(t, example); aud != "https://push.example.net" || sub != "mailto:push@example.com" {
		t.Error(aud, sub)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	to, now := &url.URL{Scheme: "https", Host: "push.example.net:8443", Path: "/send/1"}, time.Unix(1_790_000_000, 0)
	header, err := vapid(key, to, "https://greenhouse.local:8474", now)
	if err != nil {
		t.Fatal(err)
	}
	if aud, sub, expires, _ := permit(t, header); aud != "https://push.example.net:8443" || sub != "https://greenhouse.local:8474" || expires.Sub(now) <= 0 || expires.Sub(now) > 24*time.Hour {
		t.Error(header)
	}
}

// phone is a browser with a subscription at a push service.
type phone struct {
	key  *ecdh.PrivateKey
	auth []byte
	*httptest.Server
	mu     sync.Mutex
	got    []got
	answer http.HandlerFunc
}

// subscribed returns an agent with a phone, "did:key:ann", that an owner allowed, and the phone.
func subscribed(t *testing.T, answer http.HandlerFunc) (*Agent, *phone) {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &phone{key: key, auth: []byte("0123456789abcdef"), answer: answer}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.got = append(p.got, got{r.URL.Path, r.Header, string(body)})
		p.mu.Unlock()
		if p.answer == nil {
			w.WriteHeader(http.StatusCreated)
			return
		}
		p.answer(w, r)
	}))
	t.Cleanup(p.Close)
	a := newAgent(nil)
	a.Push = p.URL
	a.world.roots = x509.NewCertPool()
	a.world.roots.AddCert(p.Certificate())
	if a.world.Phones, err = push.Open(push.Options{Write: func([]byte) error { return nil }, May: func(string) bool { return true }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.world.Phones.Begin())
	if _, err := a.world.Phones.State("did:key:ann"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.world.Phones.Offer("did:key:ann", "ann", p.sub(p.URL+"/send/1")), a.world.Phones.Allow("did:key:ann")); err != nil {
		t.Fatal(err)
	}
	return a, p
}

func (p *phone) sub(at string) push.Subscription {
	return push.Subscription{Endpoint: at, Keys: push.Keys{P256dh: base64url.EncodeToString(p.key.PublicKey().Bytes()), Auth: base64url.EncodeToString(p.auth)}}
}

func (p *phone) all() []got { p.mu.Lock(); defer p.mu.Unlock(); return p.got }

// tell sends the phone a message.
func (a *Agent) tell(ctx context.Context, o ...occurrence.Occurrence) error {
	all := a.receivers()
	if len(all) != 1 {
		return errors.New("there is no phone")
	}
	return all[0].Send(ctx, a.messageOf(o...))
}

// TestPushed: a phone is told what waits, how urgent that is and for how long, and what it replaces. The push service
// sees none of the words.
func TestPushed(t *testing.T) {
	a, p := subscribed(t, nil)
	if err := a.tell(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	stop := occurrence.Occurrence{ID: "2", Kind: occurrence.Stop, State: occurrence.Begins}
	end := occurrence.Occurrence{ID: "3", Kind: occurrence.Stop, State: occurrence.Ends}
	lost := occurrence.Occurrence{ID: "4", Kind: occurrence.Device, Of: "tank", State: occurrence.Begins}
	for _, all := range [][]occurrence.Occurrence{{stop}, {end}, {lost}, {lost, approval}} {
		if err := a.tell(t.Context(), all...); err != nil {
			t.Fatal(err)
		}
	}
	all := p.all()
	state, err := a.world.Phones.State("did:key:ann")
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range all {
		if aud, _, _, key := permit(t, of.header.Get("Authorization")); aud != p.URL || key != state.Server {
			t.Error(aud, key)
		}
		if of.header.Get("Content-Encoding") != "aes128gcm" || strings.Contains(of.body, "valve") || strings.Contains(of.header.Get("Topic"), "stop") || of.header.Get("User-Agent") == "" {
			t.Errorf("%d: %+v", i, of)
		}
	}
	header := func(i int, name string) string { return all[i].header.Get(name) }
	if ttl := header(0, "TTL"); len(ttl) != 2 || header(0, "Urgency") != "high" || header(3, "Urgency") != "normal" || header(3, "TTL") != "86400" || header(4, "TTL") != "86400" {
		t.Errorf("%+v", all)
	}
	if header(1, "Topic") == "" || header(1, "Topic") != header(2, "Topic") || header(1, "Topic") == header(0, "Topic") || header(4, "Topic") != "" || len(header(0, "Topic")) > 32 {
		t.Errorf("%+v", all)
	}
}

// TestLifetime: a push service keeps a call as long as it waits, and all else for a day.
func TestLifetime(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{-time.Minute: time.Second, 72 * time.Hour: pushedTime} {
		if got := lifetime(outbox.Message{Items: []outbox.Item{{Passing: true, Until: time.Now().Add(left)}}}); got != want {
			t.Errorf("%v: %v", left, got)
		}
	}
}

// TestPushAnswers: a subscription that has ended is dropped, a service that wants no more now is asked when it says, and
// nothing else that it answers is read or followed.
func TestPushAnswers(t *testing.T) {
	elsewhere, asked := receive(t, nil)
	for name, one := range map[string]struct {
		answer http.HandlerFunc
		fails  bool
		after  time.Duration
		gone   bool
	}{
		"gone":    {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, fails: true, gone: true},
		"unknown": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, fails: true, gone: true},
		"refused": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, fails: true},
		"redirect": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusPermanentRedirect)
		}, fails: true},
		"too many": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}, fails: true, after: 2 * time.Minute},
		"endless": {answer: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}},
	} {
		a, _ := subscribed(t, one.answer)
		err := a.tell(t.Context(), approval)
		var later *outbox.Later
		if errors.As(err, &later); (err != nil) != one.fails || one.after > 0 && (later == nil || later.After != one.after) {
			t.Errorf("%s: %v", name, err)
		}
		if told := len(a.world.Phones.Told()); (told == 0) != one.gone || len(a.world.Phones.List()) != 1 {
			t.Errorf("%s: %d phones are told", name, told)
		}
	}
	if len(asked()) > 0 {
		t.Error("a redirect is followed")
	}
	a, _ := subscribed(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := a.tell(ctx, approval); err == nil {
		t.Error("a service that hangs has it")
	}
}

// TestPushPrivate: a phone leads the site to no address of its network but at the origin that the owner named, and to no
// other port there. Who is removed, or has no permission any more, is told nothing.
func TestPushPrivate(t *testing.T) {
	a, p := subscribed(t, nil)
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer other.Close()
	for _, at := range []string{other.URL + "/x", "https://localhost:1/x", "https://[::1]/x", "https://192.168.1.1/x"} {
		if err := a.world.Phones.Offer("did:key:ann", "ann", p.sub(at)); err != nil {
			t.Fatal(err)
		}
		if err := a.tell(t.Context(), approval); !errors.Is(err, outbound.ErrPrivate) {
			t.Errorf("%s: %v", at, err)
		}
	}
	all := a.receivers()
	if err := a.world.Phones.Remove("did:key:ann"); err != nil {
		t.Fatal(err)
	}
	if err := all[0].Send(t.Context(), outbox.Message{}); err != nil || len(a.receivers()) > 0 || len(p.all()) > 0 {
		t.Error(err)
	}
	a.Page = ""
	if _, err := a.Define(); err == nil {
		t.Error("a configuration that tells nobody is taken")
	}
	for _, wrong := range []string{"http://192.168.1.2", "https://192.168.1.2/x", "x"} {
		if _, err := (&Agent{Page: "https://x.local", Push: wrong}).Define(); err == nil {
			t.Errorf("push: %s is taken", wrong)
		}
	}
	for _, right := range []Agent{{Page: "https://x.local"}, {Page: "https://x.local/", Push: "https://192.168.1.2:8443/"}} {
		if _, err := right.Define(); err != nil {
			t.Error(err)
		}
	}
}
