package anp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"
	"agentsite/transport/adapter/adaptertest"
	"agentsite/transport/anp/did"
	"agentsite/transport/httpsig"

	"github.com/go-json-experiment/json"
)

const reading = `{"jsonrpc":"2.0","id":1,"method":"read_points","params":{"points":["greenhouse/temperature"]}}`

// nextSecond is later than the site's start, which is the earliest time of a signature.
func nextSecond() time.Time { return time.Now().Add(time.Second) }

// sign returns a signed request.
func sign(t testing.TB, url, body, keyID string, key identity.Key, at time.Time) *http.Request {
	t.Helper()
	r, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err == nil {
		err = httpsig.Sign(r, []byte(body), keyID, key.Private(), at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send returns the status, the challenge, and the answer to a request.
func send(t testing.TB, r *http.Request) (status int, challenge, text string) {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.Join(res.Header.Values("WWW-Authenticate"), "; "), string(b)
}

// TestSigned: a signature by the key of a grant is its holder's, once. One by another key proves
// that key, which may do nothing here.
func TestSigned(t *testing.T) {
	before := time.Now()
	s := start(t)
	caller, stranger := identity.New(), identity.New()
	s.Grant(t, caller.ID(), "read greenhouse/temperature")
	at := s.URL + "/anp/rpc"
	expect := func(r *http.Request, status int, says string) {
		t.Helper()
		if got, challenge, text := send(t, r); got != status || !strings.Contains(challenge+text, says) {
			t.Errorf("%d %s %s, want %d with %q", got, challenge, text, status, says)
		}
	}
	r := sign(t, at, reading, caller.ID().String(), caller, nextSecond())
	again := r.Clone(t.Context())
	again.Body = io.NopCloser(strings.NewReader(reading))
	expect(r, 200, `"unit":"Cel"`)
	expect(again, 401, "invalid_nonce")

	name := strings.TrimPrefix(caller.ID().String(), "did:key:")
	expect(sign(t, at, reading, caller.ID().String()+"#"+name, caller, nextSecond()), 200, `"unit":"Cel"`)
	expect(sign(t, at, reading, caller.ID().String()+"#key-1", caller, nextSecond()), 401, "invalid_did")
	expect(sign(t, at, strings.Replace(reading, "temperature", "humidity", 1), caller.ID().String(), caller, nextSecond()), 200, `"code":403`)
	expect(sign(t, at, reading, stranger.ID().String(), stranger, nextSecond()), 403, "no permission here")
	expect(sign(t, at, reading, caller.ID().String(), stranger, nextSecond()), 401, "invalid_signature")
	expect(sign(t, at, reading, "did:wba:example.com#key-1", caller, nextSecond()), 401, "invalid_did")
	expect(sign(t, at, reading, caller.ID().String(), caller, time.Now().Add(-2*time.Minute)), 401, "invalid_timestamp")
	expect(sign(t, at, reading, caller.ID().String(), caller, before), 401, "this site started after")

	other := sign(t, at, reading, caller.ID().String(), caller, nextSecond())
	other.Body = io.NopCloser(strings.NewReader(strings.Replace(reading, "temperature", "temperaturf", 1)))
	expect(other, 401, "invalid_content_digest")
	elsewhere := sign(t, s.URL+"/anp/ad.json", reading, caller.ID().String(), caller, nextSecond())
	elsewhere.URL.Path = "/anp/rpc"
	expect(elsewhere, 401, "invalid_signature")
	expect(sign(t, s.URL+"/api", reading, caller.ID().String(), caller, nextSecond()), 404, "")

	// Where a token is sent, the token counts.
	token := sign(t, at, reading, stranger.ID().String(), stranger, nextSecond())
	token.Header.Set("Authorization", "Bearer "+adaptertest.SiteToken)
	expect(token, 200, `"unit":"Cel"`)
	unsigned, _ := http.NewRequest("POST", at, strings.NewReader(reading))
	expect(unsigned, 401, `DIDWba realm="agentsite"`)

	// A reader proves itself too, and a document is for it.
	ad, err := http.NewRequest("GET", s.URL+"/anp/ad.json", nil)
	if err == nil {
		err = httpsig.Sign(ad, nil, caller.ID().String(), caller.Private(), nextSecond())
	}
	if err != nil {
		t.Fatal(err)
	}
	expect(ad, 200, `"zorilla"`)
}

// TestNonces: a nonce of a key counts once, for as long as its signature. The memory is bounded,
// and keys that a holder delegated its grant to take no slot from it or from others.
func TestNonces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSignatures(nil, nil)
		use := func(key, account, nonce string) error {
			return s.use(key, account, &httpsig.Signature{Nonce: nonce, Expires: time.Now().Add(time.Minute)}, time.Now())
		}
		ann, bob := identity.New().ID().String(), identity.New().ID().String()
		for i := range maxNonces {
			if err := use(ann, ann, fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := use(ann, ann, "7"); !errors.Is(err, errNonce) || !strings.Contains(err.Error(), "used before") {
			t.Error(err)
		}
		if err := use(ann, ann, "one more"); !errors.Is(err, errNonce) {
			t.Error(err)
		}
		for i := range 200 {
			if err := use(identity.New().ID().String(), bob, "7"); (err == nil) != (i < maxPassedOn) {
				t.Fatal(i, err)
			}
		}
		late := identity.New().ID().String()
		if err := use(late, bob, "7"); !errors.Is(err, errNonce) {
			t.Error(err)
		}
		for i := range 100 {
			if key := identity.New().ID().String(); use(key, key, "7") != nil {
				t.Fatalf("holder %d is shut out by others", i)
			}
		}
		if err := use(bob, bob, "7"); err != nil {
			t.Errorf("a holder is shut out by those that it passed its grant on to: %v", err)
		}
		time.Sleep(59 * time.Second)
		if err := use(late, bob, "7"); !errors.Is(err, errNonce) {
			t.Error(err)
		}
		time.Sleep(purgeEvery + time.Second)
		if err := use(late, bob, "7"); err != nil || len(s.signers) != 1 {
			t.Error(err, len(s.signers))
		}
	})
}

// TestUnknownTime: a site that does not know the time takes no signature.
func TestUnknownTime(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Now = func() (time.Time, bool) { return time.Now(), false }
	s.Serve(t, Routes(&s.Site))
	caller := identity.New()
	s.Grant(t, caller.ID(), "read *")
	if status, challenge, _ := send(t, sign(t, s.URL+"/anp/rpc", reading, caller.ID().String(), caller, nextSecond())); status != 401 || !strings.Contains(challenge, "invalid_timestamp") {
		t.Error(status, challenge)
	}
}

// documents serves DID documents under example.com, and counts the requests.
func documents(t *testing.T, doc any) (client *http.Client, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/.well-known/did.json" || r.Host != "example.com" {
			http.NotFound(w, r)
			return
		}
		if err := json.MarshalWrite(w, doc); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	client = server.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	return client, asked
}

// TestCallers: the key of a did:wba is looked up where the owner listed the name, once, and is
// that of its grant.
func TestCallers(t *testing.T) {
	s := adaptertest.New(t, nil)
	caller := identity.New()
	client, asked := documents(t, did.Own("example.com", caller.ID()))
	s.Callers = []string{"did:wba:example.com", "did:wba:sub.example.com"}
	s.Serve(t, routes(&s.Site, did.NewResolver(s.Callers, client)))
	s.Grant(t, caller.ID(), "read greenhouse/temperature")
	for _, c := range []struct {
		keyID  string
		key    identity.Key
		status int
		says   string
		asked  int32
	}{
		{"did:wba:example.org#key-1", caller, 401, "invalid_did", 0},
		{"did:wba:example.com#key-1", caller, 200, "", 1},
		{"did:wba:example.com#key-1", identity.New(), 401, "invalid_signature", 1},
		{"did:wba:example.com#key-2", caller, 401, "invalid_did", 1},
		{"did:wba:example.com", caller, 401, "invalid_did", 1},
		{"did:wba:sub.example.com#key-1", caller, 401, "invalid_did", 2},
		{"did:wba:sub.example.com#key-1", caller, 401, "invalid_did", 2},
	} {
		status, challenge, text := send(t, sign(t, s.URL+"/anp/rpc", reading, c.keyID, c.key, nextSecond()))
		if status != c.status || !strings.Contains(challenge, c.says) || asked.Load() != c.asked {
			t.Errorf("%s: %d %s %s after %d requests, want %+v", c.keyID, status, challenge, text, asked.Load(), c)
		}
	}
}

// TestDomain: a site with a domain has a DID document there, whose key is the site's, and its
// description says the name.
func TestDomain(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Domain = "garden.example.org:8474"
	h := s.Handler(s.Domain, Routes(&s.Site))
	get := func(path string) (int, []byte) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "https://"+s.Domain+path, nil))
		return w.Code, w.Body.Bytes()
	}
	_, text := get("/.well-known/did.json")
	doc, err := did.Parse("did:wba:garden.example.org%3A8474", text)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := doc.Key(did.KeyID(s.Domain)); err != nil || key != s.Key.ID() {
		t.Error(key, err)
	}
	if doc.Services[0].Type != "AgentDescription" || doc.Services[0].Endpoint != "https://garden.example.org:8474/anp/ad.json" {
		t.Error(doc.Services)
	}
	if _, text := get("/anp/ad.json"); !bytes.Contains(text, []byte(`"did":"did:wba:garden.example.org%3A8474"`)) {
		t.Errorf("%s", text)
	}
}

// TestOtherHost: under its other names, a site does not tell strangers its domain.
func TestOtherHost(t *testing.T) {
	s := adaptertest.New(t, nil)
	s.Domain = "garden.example.org"
	s.Serve(t, Routes(&s.Site))
	for _, path := range []string{"/.well-known/did.json", "/anp/ad.json"} {
		if res, text := s.Ask(t, "GET", path, "", ""); strings.Contains(text, `"did"`) || strings.Contains(text, "garden.example") || (res.StatusCode == 404) != (path == "/.well-known/did.json") {
			t.Error(path, res.Status, text)
		}
	}
}
