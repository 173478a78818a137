package did

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"agentsite/node/identity"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mr-tron/base58"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNames: a name has a domain and no address, and its document is under the domain.
func TestNames(t *testing.T) {
	fingerprint := thumbprint(identity.New().ID())
	for name, at := range map[string]string{
		"did:wba:example.com":                              "https://example.com/.well-known/did.json",
		"did:wba:example.com%3A3000":                       "https://example.com:3000/.well-known/did.json",
		"did:wba:a-b.example.com%3A3000:user:ann":          "https://a-b.example.com:3000/user/ann/did.json",
		"did:wba:example.com:user.x:ann:e1_" + fingerprint: "https://example.com/user.x/ann/e1_" + fingerprint + "/did.json",
	} {
		if err := Check(name); err != nil || location(name) != at {
			t.Errorf("%s: %v %s, want %s", name, err, location(name), at)
		}
	}
	for _, name := range []string{
		"", "did:wba:", "did:wba:example", "did:wba:localhost", "did:wba:127.0.0.1", "did:wba:127.1", "did:wba:0x7f.0.0.0x1", "did:wba:[::1]", "did:wba:example.com:", "did:wba:example.com::a",
		"did:wba:example.com:3000:..:x", "did:wba:example.com:..", "did:wba:example.com:a/b", "did:wba:example.com/x", "did:wba:example.com?x", "did:wba:example.com#x", "did:wba:a@example.com",
		"did:wba:Example.com", "did:wba:example.com.", "did:wba:.example.com", "did:wba:-a.example.com", "did:wba:example.com%3a3000", "did:wba:example.com%3A0", "did:wba:example.com%2Fx",
		"did:web:example.com", "did:key:z6Mk", "did:wba:example.com:a b", "did:wba:example.com:" + strings.Repeat("a", 300), "did:wba:example.com:k1_" + fingerprint, "did:wba:exämple.com",
	} {
		if Check(name) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// bound returns the name and the document of a key, with the proof in an encoding, after change.
func bound(t *testing.T, key identity.Key, encode func([]byte) string, change func(doc, proof map[string]any)) (string, []byte) {
	t.Helper()
	name := "did:wba:example.com:user:ann:e1_" + thumbprint(key.ID())
	doc := map[string]any{
		"id": name, "authentication": []any{"#key-1"}, "assertionMethod": []any{name + "#key-1"}, "n": 1e21,
		"verificationMethod": []any{map[string]any{"id": "#key-1", "type": "Multikey", "controller": name, "publicKeyMultibase": strings.TrimPrefix(key.ID().String(), keyPrefix)}},
	}
	proof := map[string]any{"type": "DataIntegrityProof", "cryptosuite": "eddsa-jcs-2022", "created": "2026-11-24T08:33:37Z", "verificationMethod": name + "#key-1", "proofPurpose": "assertionMethod"}
	var signed bytes.Buffer
	for _, part := range []any{proof, doc} {
		v, err := json.Marshal(part)
		if err == nil {
			err = (*jsontext.Value)(&v).Canonicalize()
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(v)
		signed.Write(sum[:])
	}
	proof["proofValue"] = encode(ed25519.Sign(key.Private(), signed.Bytes()))
	doc["proof"] = proof
	if change != nil {
		change(doc, proof)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return name, text
}

func multibase(b []byte) string { return "z" + base58.Encode(b) }

// TestBound: the document of a name with a key's fingerprint needs the proof by that key, in either
// encoding that there is.
func TestBound(t *testing.T) {
	type object = map[string]any
	key, other := identity.New(), identity.New()
	for what, c := range map[string]struct {
		encode func([]byte) string
		change func(doc, proof map[string]any)
		ok     bool
	}{
		"multibase":        {multibase, nil, true},
		"base64url":        {base64.RawURLEncoding.EncodeToString, nil, true},
		"no proof":         {multibase, func(doc, _ object) { delete(doc, "proof") }, false},
		"a member more":    {multibase, func(doc, _ object) { doc["service"] = []any{} }, false},
		"the proof's time": {multibase, func(_, proof object) { proof["created"] = "2027-11-24T08:33:37Z" }, false},
		"another key": {multibase, func(doc, _ object) {
			doc["verificationMethod"].([]any)[0].(object)["publicKeyMultibase"] = strings.TrimPrefix(other.ID().String(), keyPrefix)
		}, false},
		"another purpose": {multibase, func(_, proof object) { proof["proofPurpose"] = "authentication" }, false},
		"not asserting":   {multibase, func(doc, _ object) { doc["assertionMethod"] = []any{} }, false},
		"a long value":    {func(b []byte) string { return multibase(bytes.Repeat(b, 9)) }, nil, false},
		"no value":        {func([]byte) string { return "" }, nil, false},
	} {
		name, text := bound(t, key, c.encode, c.change)
		doc, err := Parse(name, text)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil {
			if got, err := doc.Key(name + "#key-1"); got != key.ID() {
				t.Errorf("%s: %v %v", what, got, err)
			}
		}
	}
	name, text := bound(t, key, multibase, nil)
	if _, err := Parse(strings.Replace(name, "ann", "bob", 1), text); err == nil {
		t.Error("a document is that of another name")
	}
}

// TestKeys: only Ed25519 keys that authenticate the subject count.
func TestKeys(t *testing.T) {
	id := identity.New().ID()
	const name = "did:wba:example.com"
	z := strings.TrimPrefix(id.String(), keyPrefix)
	x := base64.RawURLEncoding.EncodeToString(id[:])
	for text, ok := range map[string]bool{
		`{"id":"` + name + `","verificationMethod":[{"id":"#a","controller":"` + name + `","publicKeyMultibase":"` + z + `"}],"authentication":["#a"]}`:                                   true,
		`{"id":"` + name + `","authentication":[{"id":"` + name + `#a","controller":"` + name + `","publicKeyJwk":{"kty":"OKP","crv":"Ed25519","x":"` + x + `"}}]}`:                       true,
		`{"id":"` + name + `","verificationMethod":[{"id":"#a","controller":"` + name + `","publicKeyMultibase":"` + z + `"}],"assertionMethod":["#a"]}`:                                  false,
		`{"id":"` + name + `","verificationMethod":[{"id":"#a","controller":"did:wba:other.example.com","publicKeyMultibase":"` + z + `"}],"authentication":["#a"]}`:                      false,
		`{"id":"` + name + `","authentication":[{"id":"#a","controller":"` + name + `","publicKeyJwk":{"kty":"OKP","crv":"X25519","x":"` + x + `"}}]}`:                                    false,
		`{"id":"` + name + `","authentication":[{"id":"#a","controller":"` + name + `","publicKeyJwk":{"kty":"OKP","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}]}`: false,
		`{"id":"` + name + `","authentication":["did:wba:other.example.com#a"]}`:                                                                                                          false,
		`{"id":"` + name + `","authentication":[1]}`: false,
		`{"id":"` + name + `","id":"` + name + `"}`:  false,
		`{}`: false, `[]`: false, ``: false,
	} {
		doc, err := Parse(name, []byte(text))
		if err == nil {
			_, err = doc.Key(name + "#a")
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSole: a document has one key, or says which one is meant.
func TestSole(t *testing.T) {
	a, b := identity.New().ID(), identity.New().ID()
	for what, c := range map[string]struct {
		keys map[string]identity.ID
		ok   bool
	}{
		"one": {map[string]identity.ID{"#1": a}, true}, "one twice": {map[string]identity.ID{"#1": a, "#2": a}, true}, "two": {map[string]identity.ID{"#1": a, "#2": b}, false}, "none": {nil, false},
	} {
		if key, err := (&Document{keys: c.keys}).sole(); (err == nil) != c.ok || c.ok && key != a {
			t.Errorf("%s: %v %v", what, key, err)
		}
	}
}

// TestResolver: a document is fetched once in its time, and its absence seldom.
func TestResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := identity.New()
		text, err := json.Marshal(Own("example.com", key.ID()))
		if err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32
		broken := true
		r := NewResolver([]string{"did:wba:example.com"}, &http.Client{Transport: answering(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1); broken {
				http.Redirect(w, r, "https://other.example.com", http.StatusFound)
				return
			}
			w.Write(text)
		}), CheckRedirect: NewClient().CheckRedirect})
		expect := func(ok bool, n int32) {
			t.Helper()
			got, err := r.Key(t.Context(), "did:wba:example.com#key-1")
			if (err == nil) != ok || ok && got != key.ID() || asked.Load() != n {
				t.Errorf("%v %v after %d requests, want %v after %d", got, err, asked.Load(), ok, n)
			}
		}
		expect(false, 1)
		broken = false
		expect(false, 1)
		time.Sleep(keepBad)
		expect(true, 2)
		broken = true
		expect(true, 2)
		time.Sleep(keepGood - time.Second)
		expect(true, 2)
		time.Sleep(time.Second)
		expect(false, 3)
	})
}

// TestResolverWaiting: only a few callers wait while the document of a name is fetched, once for
// all of them. A caller that leaves does not wait any longer.
func TestResolverWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := identity.New()
		text, err := json.Marshal(Own("example.com", key.ID()))
		if err != nil {
			t.Fatal(err)
		}
		var asked, found, refused, left atomic.Int32
		r := NewResolver([]string{"did:wba:example.com"}, &http.Client{Transport: answering(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			time.Sleep(5 * time.Second)
			w.Write(text)
		})})
		leaving, leave := context.WithCancel(t.Context())
		ask := func(ctx context.Context) {
			switch _, err := r.Key(ctx, "did:wba:example.com#key-1"); {
			case err == nil:
				found.Add(1)
			case errors.Is(err, context.Canceled):
				left.Add(1)
			default:
				refused.Add(1)
			}
		}
		go ask(t.Context())
		synctest.Wait()
		go ask(leaving)
		synctest.Wait()
		for range 1000 {
			go ask(t.Context())
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		if left.Load() != 1 || refused.Load() != 1000-maxWaiting+1 || found.Load() != 0 {
			t.Errorf("%d left, %d are refused, %d have it", left.Load(), refused.Load(), found.Load())
		}
		time.Sleep(6 * time.Second)
		if ask(t.Context()); found.Load() != maxWaiting+1 || asked.Load() != 1 {
			t.Errorf("%d have it, after %d requests", found.Load(), asked.Load())
		}
	})
}

// answering is a transport that asks a handler.
type answering func(http.ResponseWriter, *http.Request)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}

// TestFetch: a document that is too long, of another type or status, or under an address of this
// network is not read.
func TestFetch(t *testing.T) {
	for what, h := range map[string]answering{
		"long":    func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), maxDocument+1)) },
		"missing": func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"other":   func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"id":"did:wba:example.org"}`)) },
	} {
		if doc, err := Fetch(t.Context(), &http.Client{Transport: h}, "did:wba:example.com"); err == nil {
			t.Error(what, doc)
		}
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	client := NewClient()
	dial := client.Transport.(*http.Transport).DialContext
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dial(ctx, network, server.Listener.Addr().String()) // as if the domain's address was that
	}
	if _, err := Fetch(t.Context(), client, "did:wba:example.com"); err == nil || !strings.Contains(err.Error(), "private network") {
		t.Error(err)
	}
}

// FuzzDocument: no document crashes the reader, and an accepted document is that of the name. A
// name that may be looked up leads to a host by HTTPS, and to nothing else.
func FuzzDocument(f *testing.F) {
	text, err := json.Marshal(Own("example.com", identity.New().ID()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("did:wba:example.com", text)
	f.Add("did:wba:example.com:e1_x", []byte(`{"id":"did:wba:example.com:e1_x","assertionMethod":[{"id":"#a"}],"proof":{"verificationMethod":"#a","proofValue":"z1"}}`))
	f.Add("did:wba:example.com%3A8443:user:..", []byte(`{"proof":{}}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		if Check(name) == nil {
			u, err := url.Parse(location(name))
			if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != path.Clean(u.Path) || HostOf(name) != u.Host {
				t.Errorf("%q leads to %+v, %v", name, u, err)
			}
		}
		if doc, err := Parse(name, text); err == nil && doc.ID != name {
			t.Errorf("%q: %q", name, doc.ID)
		}
	})
}

// TestBounds: the lists of a document are bounded before anything is looked up in them.
func TestBounds(t *testing.T) {
	const name = "did:wba:example.com"
	for list, one := range map[string]string{"verificationMethod": `{"id":"#a"}`, "authentication": `"#a"`, "assertionMethod": `"#a"`, "service": `{"id":"#a"}`} {
		for n, ok := range map[int]bool{64: true, 65: false, 6400: false} {
			text := `{"id":"` + name + `","` + list + `":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
			if _, err := Parse(name, []byte(text)); (err == nil) != ok {
				t.Errorf("%d of %s: %v", n, list, err)
			}
		}
	}
}
