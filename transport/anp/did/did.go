// Package did reads and writes the documents of did:wba (ANP-03), and finds the Ed25519 key that a
// name means. It fetches a document from the name's own domain and from nowhere else.
package did

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"agentsite/node/identity"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mr-tron/base58"
)

const (
	prefix     = "did:wba:"
	keyPrefix  = "did:key:"
	maxName    = 256 // bytes of a name
	maxEntries = 64  // of each list in a document: each relationship is looked up among all methods
	boundKey   = "e1_"
)

var form = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(identity.WBAPattern) })

// Check accepts only a did:wba whose document can be fetched.
func Check(name string) error {
	if len(name) > maxName || !form().MatchString(name) {
		return fmt.Errorf("%.80q is not a did:wba such as did:wba:example.com or did:wba:example.com:user:ann:e1_…, with a domain and no address", name)
	}
	if strings.Contains(name, ":k1_") {
		return fmt.Errorf("%.80q has a key of secp256k1; only Ed25519 is known here", name)
	}
	return nil
}

// Of returns the name of a site at a domain, which may have a port.
func Of(domain string) string { return prefix + strings.Replace(domain, ":", "%3A", 1) }

// location returns where the document of a checked name is.
func location(name string) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(name, prefix), ":")
	if path = strings.ReplaceAll(path, ":", "/"); path == "" {
		path = ".well-known"
	}
	return "https://" + strings.Replace(host, "%3A", ":", 1) + "/" + path + "/did.json"
}

// document is the part of a document that is read here.
type document struct {
	ID             string           `json:"id"`
	Methods        []method         `json:"verificationMethod"`
	Authentication []jsontext.Value `json:"authentication"`
	Assertion      []jsontext.Value `json:"assertionMethod"`
	Services       []Service        `json:"service"`
}

type method struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Controller string `json:"controller"`
	Multibase  string `json:"publicKeyMultibase"`
	JWK        struct {
		KTY string `json:"kty"`
		CRV string `json:"crv"`
		X   string `json:"x"`
	} `json:"publicKeyJwk"`
}

// Service is a service of a document.
type Service struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Endpoint any    `json:"serviceEndpoint"`
}

// Document is a document whose name and proof were checked.
type Document struct {
	ID       string
	Services []Service
	keys     map[string]identity.ID // those that authenticate, by their whole IDs
	asserts  map[string]identity.ID // and those that prove documents
}

// Key returns the key with an ID, name#fragment, by which the document's subject authenticates.
func (d *Document) Key(id string) (identity.ID, error) {
	key, ok := d.keys[id]
	if !ok {
		return key, errors.New("the document of the did:wba has no such Ed25519 key for authentication")
	}
	return key, nil
}

// Parse reads the document of a name. That of a name with a bound key (e1_) has to have a proof by
// that key.
func Parse(name string, text []byte) (*Document, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, errors.New("its document is not valid JSON of a DID document")
	}
	if len(d.Methods) > maxEntries || len(d.Authentication) > maxEntries || len(d.Assertion) > maxEntries || len(d.Services) > maxEntries {
		return nil, fmt.Errorf("its document has a list of more than %d entries", maxEntries)
	}
	if d.ID != name {
		return nil, fmt.Errorf("its document is that of %.80q", d.ID)
	}
	authenticate, err := d.related(d.Authentication)
	if err != nil {
		return nil, err
	}
	asserts, err := d.related(d.Assertion)
	if err != nil {
		return nil, err
	}
	if bound, ok := strings.CutPrefix(name[strings.LastIndexByte(name, ':')+1:], boundKey); ok {
		if err := checkProof(text, asserts, bound); err != nil {
			return nil, err
		}
	}
	return &Document{ID: d.ID, Services: d.Services, keys: authenticate, asserts: asserts}, nil
}

// CheckProof verifies the proof in a document of another kind, such as an agent description, by a
// key of d.
func (d *Document) CheckProof(text []byte) error { return checkProof(text, d.asserts, "") }

// related returns the Ed25519 keys of a relationship: IDs of methods, or methods themselves.
func (d *document) related(all []jsontext.Value) (map[string]identity.ID, error) {
	keys := make(map[string]identity.ID)
	for _, v := range all {
		var m method
		var id string
		switch {
		case v.Kind() == '{':
			if err := json.Unmarshal(v, &m); err != nil {
				return nil, errors.New("a verification method of its document is malformed")
			}
		case json.Unmarshal(v, &id) == nil:
			i := slices.IndexFunc(d.Methods, func(m method) bool { return d.absolute(m.ID) == d.absolute(id) })
			if i < 0 {
				continue
			}
			m = d.Methods[i]
		default:
			return nil, errors.New("a relationship of its document is malformed")
		}
		if key, ok := m.key(); ok && m.Controller == d.ID {
			keys[d.absolute(m.ID)] = key
		}
	}
	return keys, nil
}

// absolute resolves an ID that may be relative.
func (d *document) absolute(id string) string {
	if strings.HasPrefix(id, "#") {
		return d.ID + id
	}
	return id
}

// key returns a method's key, if it is one of Ed25519.
func (m *method) key() (id identity.ID, ok bool) {
	if m.Multibase != "" {
		id, err := identity.Parse(keyPrefix + m.Multibase)
		return id, err == nil
	}
	x, err := base64.RawURLEncoding.DecodeString(m.JWK.X)
	if err != nil || m.JWK.KTY != "OKP" || m.JWK.CRV != "Ed25519" || len(x) != len(id) {
		return id, false
	}
	return identity.ID(x), identity.ID(x).Valid()
}

// thumbprint is that of RFC 7638.
func thumbprint(key identity.ID) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key[:]) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkProof verifies the proof of a document by one of keys: a DataIntegrityProof with
// eddsa-jcs-2022. bound is the key's thumbprint; "" for any of them.
func checkProof(text []byte, keys map[string]identity.ID, bound string) error {
	var whole, options map[string]jsontext.Value
	var p struct {
		Type       string `json:"type"`
		Suite      string `json:"cryptosuite"`
		Method     string `json:"verificationMethod"`
		Purpose    string `json:"proofPurpose"`
		ProofValue string `json:"proofValue"`
	}
	wrong := errors.New("the document lacks a proof by a key of its did:wba, or by the one that the name is bound to (DataIntegrityProof, eddsa-jcs-2022)")
	if json.Unmarshal(text, &whole) != nil || json.Unmarshal(whole["proof"], &options) != nil || json.Unmarshal(whole["proof"], &p) != nil {
		return wrong
	}
	key, ok := keys[p.Method]
	if !ok || p.Type != "DataIntegrityProof" || p.Suite != "eddsa-jcs-2022" || p.Purpose != "assertionMethod" || bound != "" && thumbprint(key) != bound {
		return wrong
	}
	delete(whole, "proof")
	delete(options, "proofValue")
	var signed bytes.Buffer
	for _, part := range []map[string]jsontext.Value{options, whole} {
		v, err := json.Marshal(part)
		if err == nil {
			err = (*jsontext.Value)(&v).Canonicalize() // RFC 8785
		}
		if err != nil {
			return wrong
		}
		sum := sha256.Sum256(v)
		signed.Write(sum[:])
	}
	// The suite has multibase; the SDKs of ANP write base64url, of which 64 bytes have 86 letters.
	signature, err := base64.RawURLEncoding.DecodeString(p.ProofValue)
	if len(p.ProofValue) != 86 {
		multibase, ok := strings.CutPrefix(p.ProofValue, "z")
		if !ok || len(multibase) > 100 {
			return wrong
		}
		signature, err = base58.Decode(multibase)
	}
	if err != nil || !ed25519.Verify(key[:], signed.Bytes(), signature) {
		return errors.New("the proof of the document is not of it, or not by the key that it names")
	}
	return nil
}

// Split returns the DID of an ID of a key, and whether it has the key's part, too.
func Split(keyID string) (name string, ok bool) {
	name, fragment, ok := strings.Cut(keyID, "#")
	return name, ok && fragment != ""
}

// own is the document of a site.
const own = `{"@context":["https://www.w3.org/ns/did/v1","https://w3id.org/security/data-integrity/v2","https://w3id.org/security/multikey/v1"],"id":"NAME",` +
	`"verificationMethod":[{"id":"NAME#key-1","type":"Multikey","controller":"NAME","publicKeyMultibase":"KEY"}],` +
	`"authentication":["NAME#key-1"],"assertionMethod":["NAME#key-1"],` +
	`"service":[{"id":"NAME#ad","type":"AgentDescription","serviceEndpoint":"https://DOMAIN/anp/ad.json"}]}`

// Own returns the document of a site at a domain.
func Own(domain string, key identity.ID) jsontext.Value {
	return jsontext.Value(strings.NewReplacer("NAME", Of(domain), "KEY", strings.TrimPrefix(key.String(), keyPrefix), "DOMAIN", domain).Replace(own))
}

// KeyID is the ID of the key of a site at a domain.
func KeyID(domain string) string { return Of(domain) + "#key-1" }

// HostOf returns the host and the port of a checked name, as in a URL.
func HostOf(name string) string {
	u, err := url.Parse(location(name))
	if err != nil {
		return "" // a checked name is one
	}
	return u.Host
}
