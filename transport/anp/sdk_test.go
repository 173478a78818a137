package anp

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"agentsite/transport/anp/did"
	"agentsite/transport/httpsig"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestSDK: a document and a request that were made by the protocol's own SDK (anp-interop
// auth-fixture of commit 3db6ee8) are verified, and no changed ones.
func TestSDK(t *testing.T) {
	text, err := os.ReadFile("testdata/sdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var sdk struct {
		Document jsontext.Value    `json:"did_document"`
		Headers  map[string]string `json:"headers"`
		Method   string            `json:"method"`
		URL      string            `json:"request_url"`
		Body     string            `json:"body"`
	}
	if err := json.Unmarshal(text, &sdk); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(sdk.Method, sdk.URL, strings.NewReader(sdk.Body))
	r.RequestURI = r.URL.RequestURI()
	for name, value := range sdk.Headers {
		r.Header.Set(name, value)
	}
	sig, err := httpsig.Parse(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sig.CheckTime(sig.Created), sig.CheckBody([]byte(sdk.Body))); err != nil {
		t.Error(err)
	}
	name, _ := did.Split(sig.KeyID)
	if err := did.Check(name); err != nil {
		t.Error(err)
	}
	doc, err := did.Parse(name, sdk.Document)
	if err != nil {
		t.Fatal(err)
	}
	key, err := doc.Key(sig.KeyID)
	if err != nil || !sig.Verify(key[:]) {
		t.Error(key, err)
	}
	for old, with := range map[string]string{
		`"proofValue": "`: `"proofValue": "A`, "eddsa-jcs-2022": "eddsa-rdfc-2022", `"X25519KeyAgreementKey2019"`: `"X25519KeyAgreementKey2020"`,
		`"proof"`: `"proof2"`, `"assertionMethod": [`: `"assertionMethod2": [`, `"proofPurpose": "assertionMethod"`: `"proofPurpose": "authentication"`,
	} {
		changed := bytes.ReplaceAll(sdk.Document, []byte(old), []byte(with))
		if bytes.Equal(changed, sdk.Document) {
			t.Fatal(old, "is not in the document")
		}
		if _, err := did.Parse(name, changed); err == nil {
			t.Errorf("%s was changed to %s, and nobody minds", old, with)
		}
	}
}
