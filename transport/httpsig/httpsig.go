// Package httpsig signs HTTP requests and reads their signatures, by RFC 9421 with Ed25519 and the
// digests of RFC 9530, in the profile of ANP. A request has one signature, which covers its method,
// its URL, its host and its body, and is valid for minutes.
//
// The caller finds the key of a signature, knows the time, and refuses a signature that it has
// seen before.
package httpsig

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Window is the longest time for which a signature counts.
const Window = 5 * time.Minute

const (
	// skew is how far a signer's clock may be ahead.
	skew = 30 * time.Second

	maxField      = 2 << 10 // bytes of a header field of a signature
	maxComponents = 16
	maxText       = 256 // bytes of a parameter

	inputField     = "Signature-Input"
	signatureField = "Signature"
	digestField    = "Content-Digest"
)

// Accept is the value of the header Accept-Signature, which tells a client what a signature has to
// cover.
const Accept = `sig1=("@method" "@target-uri" "@authority" "content-digest");created;expires;nonce;keyid`

// The kinds of errors, by ANP-02, 3.2.4.1.
var (
	ErrRequest   = errors.New("invalid_request")
	ErrTimestamp = errors.New("invalid_timestamp")
	ErrDigest    = errors.New("invalid_content_digest")
	ErrSignature = errors.New("invalid_signature")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRequest, fmt.Sprintf(format, args...))
}

// Signature is the signature of a request.
type Signature struct {
	KeyID            string
	Created, Expires time.Time
	Nonce            string
	// Digest is the SHA-256 of the body; nil for a request without a body, whose digest is not covered.
	Digest []byte

	base, value []byte
}

// Present reports whether a request has a signature.
func Present(r *http.Request) bool {
	return len(r.Header[inputField])+len(r.Header[signatureField]) > 0
}

// Parse reads the signature of a request that a server received. It trusts r.Host, which the
// caller has checked, and reads no body.
func Parse(r *http.Request) (*Signature, error) {
	input, err := field(r.Header, inputField)
	if err != nil {
		return nil, err
	}
	value, err := field(r.Header, signatureField)
	if err != nil {
		return nil, err
	}
	in, err := parseInput(input)
	if err != nil {
		return nil, err
	}
	s := &Signature{KeyID: in.keyID, Nonce: in.nonce, Created: time.Unix(in.created, 0), Expires: time.Unix(in.expires, 0)}
	label, raw, err := parseBytes(value)
	if err != nil || label != in.label || len(raw) != ed25519.SignatureSize {
		return nil, malformed("Signature has to be %s=:…:, with a signature of Ed25519", in.label)
	}
	s.value = raw
	need := []string{"@method", "@target-uri", "@authority"}
	if r.ContentLength != 0 {
		need = append(need, "content-digest")
	}
	for _, c := range need {
		if !slices.Contains(in.components, c) {
			return nil, malformed("the signature has to cover %s", c)
		}
	}
	if slices.Contains(in.components, "content-digest") {
		if s.Digest, err = digest(r.Header); err != nil {
			return nil, err
		}
	}
	s.base, err = base(r, in.components, in.params)
	return s, err
}

// Verify reports whether a key made the signature.
func (s *Signature) Verify(key ed25519.PublicKey) bool { return ed25519.Verify(key, s.base, s.value) }

// CheckTime refuses a signature that does not count at a time.
func (s *Signature) CheckTime(now time.Time) error {
	switch {
	case s.Expires.Sub(s.Created) > Window || !s.Expires.After(s.Created):
		return fmt.Errorf("%w: expires is after created by at most %d seconds", ErrTimestamp, int(Window.Seconds()))
	case s.Created.After(now.Add(skew)):
		return fmt.Errorf("%w: the signature is of a time to come; it is %s here", ErrTimestamp, now.UTC().Format(time.RFC3339))
	case !now.Before(s.Expires):
		return fmt.Errorf("%w: the signature has expired; it is %s here", ErrTimestamp, now.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckBody refuses a body that was not signed.
func (s *Signature) CheckBody(body []byte) error {
	if s.Digest == nil && len(body) == 0 {
		return nil
	}
	if sum := sha256.Sum256(body); !bytes.Equal(s.Digest, sum[:]) {
		return fmt.Errorf("%w: the body is not the one that was signed", ErrDigest)
	}
	return nil
}

// Sign signs a request with a body, as key keyID, for a minute. It replaces the header fields of
// a signature.
func Sign(r *http.Request, body []byte, keyID string, key ed25519.PrivateKey, now time.Time) error {
	components := []string{"@method", "@target-uri", "@authority"}
	r.Header.Del(digestField)
	if len(body) > 0 {
		sum := sha256.Sum256(body)
		r.Header.Set(digestField, "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		components = append(components, "content-digest")
	}
	quoted, err := quote(keyID)
	if err != nil {
		return err
	}
	params := fmt.Sprintf(`("%s");created=%d;expires=%d;nonce="%s";keyid=%s`,
		strings.Join(components, `" "`), now.Unix(), now.Add(time.Minute).Unix(), rand.Text(), quoted)
	text, err := base(r, components, params)
	if err != nil {
		return err
	}
	r.Header.Set(inputField, "sig1="+params)
	r.Header.Set(signatureField, "sig1=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, text))+":")
	return nil
}

// base returns the signature base (RFC 9421, 2.5).
func base(r *http.Request, components []string, params string) ([]byte, error) {
	scheme, host, target := "http", r.Host, r.RequestURI
	if r.TLS != nil {
		scheme = "https"
	}
	if r.RequestURI == "" { // of a client's
		scheme, target = r.URL.Scheme, r.URL.RequestURI()
		if host == "" {
			host = r.URL.Host
		}
	}
	if !strings.HasPrefix(target, "/") {
		return nil, malformed("the request names its target by a path")
	}
	host = strings.ToLower(host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
	var b bytes.Buffer
	for _, c := range components {
		var v string
		switch c {
		case "@method":
			v = r.Method
		case "@authority":
			v = host
		case "@target-uri":
			v = scheme + "://" + host + target
		default:
			values := slices.Clone(r.Header.Values(c))
			if strings.HasPrefix(c, "@") || len(values) == 0 {
				return nil, malformed("the signature covers %q, which is not there or not known", c)
			}
			for i, one := range values {
				values[i] = strings.TrimSpace(one)
			}
			v = strings.Join(values, ", ")
		}
		fmt.Fprintf(&b, "\"%s\": %s\n", c, v)
	}
	b.WriteString(`"@signature-params": ` + params)
	return b.Bytes(), nil
}

// digest returns the SHA-256 of Content-Digest, which may have digests of other kinds besides.
func digest(h http.Header) ([]byte, error) {
	text, err := field(h, digestField)
	if err != nil {
		return nil, err
	}
	for one := range strings.SplitSeq(text, ",") {
		if name, sum, err := parseBytes(strings.TrimSpace(one)); err == nil && name == "sha-256" && len(sum) == sha256.Size {
			return sum, nil
		}
	}
	return nil, malformed("Content-Digest has to have sha-256=:…:")
}

// field returns the only value of a header field.
func field(h http.Header, name string) (string, error) {
	values := h[name]
	switch {
	case len(values) != 1:
		return "", malformed("a signed request has %s once, and this one %d times", name, len(values))
	case len(values[0]) > maxField:
		return "", malformed("%s is longer than %d bytes", name, maxField)
	}
	return values[0], nil
}
