package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentsite/agents"
	"agentsite/agents/task"
	"agentsite/node/identity"
	"agentsite/transport/anp/did"

	"github.com/go-json-experiment/json/jsontext"
)

// texts are a description, a DID document, an interface, and the answer to each call.
type texts [4][]byte

func (a *texts) RoundTrip(r *http.Request) (*http.Response, error) {
	text := a[2]
	switch {
	case r.URL.Host != "hotel.example.com" || r.URL.Scheme != "https":
		return nil, fmt.Errorf("%s is asked", r.URL)
	case r.Method == http.MethodPost:
		text = a[3]
	case r.URL.String() == described:
		text = a[0]
	case strings.HasSuffix(r.URL.Path, "did.json"):
		text = a[1]
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, nil
}

// FuzzANPElsewhere: no description, interface or answer of an agent elsewhere breaks its reader. No
// method of it is called elsewhere, and what it says of itself as a did:wba is of its own host.
func FuzzANPElsewhere(f *testing.F) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"a":[1]}}`
	named := `{"name":"hotel","did":"did:wba:hotel.example.com","interfaces":[{"type":"StructuredInterface","protocol":"OpenRPC","content":` + rooms + `}]}`
	doc, err := did.Own("hotel.example.com", identity.New().ID()).MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(plain), []byte(nil), []byte(rooms), []byte(answer))
	f.Add([]byte(named), bytes.ReplaceAll(doc, []byte("anp/ad.json"), []byte("agents/ad.json")), []byte(nil), []byte(`{"error":{"code":-32602,"message":"x"}}`))
	f.Add([]byte(strings.Replace(named, `"did"`, `"proof":{"type":"DataIntegrityProof","proofValue":"z1"},"did"`, 1)), []byte(doc), []byte(rooms), []byte(`{"result":null}`))
	f.Add([]byte(plain), []byte(nil), []byte(`{"servers":[{"url":"https://hotel.example.com@other/"}],"methods":[{"name":"a"},{"name":"b","params":[{}],"servers":[{}]}]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, description, document, openrpc, answer []byte) {
		c, err := New(Options{URL: described, Key: identity.New(), Now: time.Now, HTTP: &http.Client{Transport: &texts{description, document, openrpc, answer}}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.Describe(t.Context())
		if err != nil {
			return
		}
		if a.Name == "" || len(a.Methods) > maxMethods || a.DID != "" && did.HostOf(a.DID) != "hotel.example.com" {
			t.Errorf("%s: %+v", description, a)
		}
		for i, m := range a.Methods {
			if c.same(m.url) != nil || len(m.Params) > maxParams {
				t.Errorf("%s: %+v", openrpc, m)
			}
			m.params(task.Request{Text: "x", Arguments: answer})
			if i > 0 {
				continue
			}
			if v, err := c.Call(t.Context(), &m, nil, agents.Terms{}); err == nil && !jsontext.Value(v).IsValid() {
				t.Errorf("%s: %s", answer, v)
			}
		}
	})
}
