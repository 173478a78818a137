package httpsig

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var (
	key = ed25519.NewKeyFromSeed([]byte("a seed of thirty-two bytes, that's it"[:32]))
	now = time.Unix(1_800_000_000, 0)
)

const body = `{"a":1}`

// received returns a signed request as a server has it.
func received(t testing.TB, change func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequest("POST", "https://Site.example:443/anp/rpc?q=%41", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := Sign(r, []byte(body), "did:key:z6Mk#z6Mk", key, now); err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest("POST", "https://site.example/anp/rpc?q=%41", strings.NewReader(body))
	in.Header, in.RequestURI = r.Header, "/anp/rpc?q=%41"
	if change != nil {
		change(in)
	}
	return in
}

func set(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// replace changes a text in the header field.
func replace(name, old, with string) func(*http.Request) {
	return func(r *http.Request) {
		before := r.Header.Get(name)
		after := strings.Replace(before, old, with, 1)
		if after == before {
			panic(old + " is not in " + before)
		}
		r.Header.Set(name, after)
	}
}

// verify does what a server does with a signature that it has not seen before.
func verify(r *http.Request, at time.Time) error {
	s, err := Parse(r)
	if err != nil {
		return err
	}
	if err := s.CheckTime(at); err != nil {
		return err
	}
	if !s.Verify(key.Public().(ed25519.PublicKey)) {
		return ErrSignature
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return s.CheckBody(b)
}

// TestVerify: a request counts as it was signed and for its time, and any change is refused.
func TestVerify(t *testing.T) {
	const in, sig, dig = "Signature-Input", "Signature", "Content-Digest"
	for name, c := range map[string]struct {
		change func(*http.Request)
		later  time.Duration
		want   error
	}{
		"as signed":                 {},
		"just in time":              {later: 59 * time.Second},
		"the signer's clock":        {later: -30 * time.Second},
		"spaces":                    {change: replace(in, `("@method" `, `( "@method"  `)},
		"another method":            {change: func(r *http.Request) { r.Method = "PUT" }, want: ErrSignature},
		"another path":              {change: func(r *http.Request) { r.RequestURI = "/anp/rpd?q=%41" }, want: ErrSignature},
		"another query":             {change: func(r *http.Request) { r.RequestURI = "/anp/rpc?q=A" }, want: ErrSignature},
		"another host":              {change: func(r *http.Request) { r.Host = "site.example.org" }, want: ErrSignature},
		"another port":              {change: func(r *http.Request) { r.Host = "site.example:8474" }, want: ErrSignature},
		"without TLS":               {change: func(r *http.Request) { r.TLS = nil }, want: ErrSignature},
		"an absolute target":        {change: func(r *http.Request) { r.RequestURI = "https://site.example/anp/rpc?q=%41" }, want: ErrRequest},
		"another body":              {change: func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"a":2}`)) }, want: ErrDigest},
		"another body and digest":   {change: set(dig, "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"), want: ErrSignature},
		"no digest":                 {change: func(r *http.Request) { r.Header.Del(dig) }, want: ErrRequest},
		"a digest of another kind":  {change: replace(dig, "sha-256", "md5"), want: ErrRequest},
		"two digests":               {change: func(r *http.Request) { r.Header.Add(dig, r.Header.Get(dig)) }, want: ErrRequest},
		"expired":                   {later: time.Minute, want: ErrTimestamp},
		"of a time to come":         {later: -31 * time.Second, want: ErrTimestamp},
		"expires changed":           {change: replace(in, ";expires=1800000060", ";expires=1800000070"), want: ErrSignature},
		"a long window":             {change: replace(in, ";expires=1800000060", ";expires=1800000301"), want: ErrTimestamp},
		"a window that ends before": {change: replace(in, ";expires=1800000060", ";expires=1800000000"), want: ErrTimestamp},
		"no expires":                {change: replace(in, ";expires=1800000060", ""), want: ErrRequest},
		"no created":                {change: replace(in, ";created=1800000000", ""), want: ErrRequest},
		"no nonce": {change: func(r *http.Request) {
			a, b, _ := strings.Cut(r.Header.Get(in), ";nonce=")
			_, b, _ = strings.Cut(b, ";")
			r.Header.Set(in, a+";"+b)
		}, want: ErrRequest},
		"an empty nonce": {change: func(r *http.Request) {
			a, b, _ := strings.Cut(r.Header.Get(in), ";nonce=")
			_, b, _ = strings.Cut(b, ";")
			r.Header.Set(in, a+`;nonce="";`+b)
		}, want: ErrRequest},
		"another key's name":      {change: replace(in, "z6Mk#", "z6Ml#"), want: ErrSignature},
		"no method":               {change: replace(in, `"@method" `, ""), want: ErrRequest},
		"no target":               {change: replace(in, `"@target-uri" `, ""), want: ErrRequest},
		"no host":                 {change: replace(in, `"@authority" `, ""), want: ErrRequest},
		"no body":                 {change: replace(in, ` "content-digest"`, ""), want: ErrRequest},
		"a component twice":       {change: replace(in, `"@method"`, `"@method" "@method"`), want: ErrRequest},
		"a component unknown":     {change: replace(in, `"@method"`, `"@method" "@query-param"`), want: ErrRequest},
		"a component absent":      {change: replace(in, `"@method"`, `"@method" "x-y"`), want: ErrRequest},
		"a component's parameter": {change: replace(in, `"@method"`, `"@method";req`), want: ErrRequest},
		"another order":           {change: replace(in, `"@method" "@target-uri"`, `"@target-uri" "@method"`), want: ErrSignature},
		"a parameter unknown":     {change: replace(in, ";nonce", `;x=1;nonce`), want: ErrRequest},
		"a parameter twice":       {change: replace(in, ";nonce", `;created=1800000000;nonce`), want: ErrRequest},
		"the algorithm named":     {change: func(r *http.Request) { r.Header.Set(in, r.Header.Get(in)+`;alg="ed25519"`) }, want: ErrSignature},
		"another algorithm":       {change: func(r *http.Request) { r.Header.Set(in, r.Header.Get(in)+`;alg="hmac-sha256"`) }, want: ErrRequest},
		"two signatures": {change: func(r *http.Request) {
			r.Header.Set(in, r.Header.Get(in)+", "+strings.Replace(r.Header.Get(in), "sig1", "sig2", 1))
		}, want: ErrRequest},
		"two header fields":    {change: func(r *http.Request) { r.Header.Add(in, r.Header.Get(in)) }, want: ErrRequest},
		"another label":        {change: replace(sig, "sig1", "sig2"), want: ErrRequest},
		"no signature":         {change: func(r *http.Request) { r.Header.Del(sig) }, want: ErrRequest},
		"no input":             {change: func(r *http.Request) { r.Header.Del(in) }, want: ErrRequest},
		"a short signature":    {change: set(sig, "sig1=:AAAA:"), want: ErrRequest},
		"a wrong signature":    {change: set(sig, "sig1=:"+strings.Repeat("A", 86)+"==:"), want: ErrSignature},
		"no base64":            {change: set(sig, "sig1=:"+strings.Repeat("-", 86)+"==:"), want: ErrRequest},
		"a long field":         {change: replace(in, ";nonce", `;nonce="`+strings.Repeat("a", 2100)+`";x`), want: ErrRequest},
		"a text of many bytes": {change: replace(in, ";keyid=", `;keyid="`+strings.Repeat("a", 300)+`";x=`), want: ErrRequest},
		"a huge time":          {change: replace(in, "created=1800000000", "created=9999999999999"), want: ErrRequest},
		"a negative time":      {change: replace(in, "created=1800000000", "created=-1"), want: ErrRequest},
	} {
		err := verify(received(t, c.change), now.Add(c.later))
		if c.want == nil && err != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestWithoutBody: a request without a body needs no digest; a request with a body does.
func TestWithoutBody(t *testing.T) {
	for _, sent := range []string{"", "x"} {
		r := httptest.NewRequest("GET", "http://127.0.0.1:8473/anp/ad.json", strings.NewReader(sent))
		out, err := http.NewRequest("GET", "http://127.0.0.1:8473/anp/ad.json", nil)
		if err == nil {
			err = Sign(out, nil, `did:key:"\`, key, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Header, r.RequestURI = out.Header, "/anp/ad.json"
		if err := verify(r, now); (err == nil) != (sent == "") {
			t.Errorf("%q: %v", sent, err)
		}
	}
	if err := Sign(httptest.NewRequest("GET", "http://a/", nil), nil, "did:ü", key, now); err == nil {
		t.Error("a key's name has letters that a header cannot have")
	}
}

// TestDigest: other digests may be beside the known one.
func TestDigest(t *testing.T) {
	const sum = "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"
	for text, ok := range map[string]bool{
		sum: true, "sha-512=:AAAA:, " + sum: true, sum + ",x=:AA==:": true,
		"sha-512=:AAAA:": false, "sha-256=:AAAA:": false, sum + "x": false, "sha-256=" + sum[9:len(sum)-1]: false, "": false,
	} {
		if b, err := digest(http.Header{"Content-Digest": {text}}); (err == nil) != ok || (len(b) == 32) != ok {
			t.Errorf("%s: %x, %v", text, b, err)
		}
	}
}

// FuzzSignatureInput: a parsed input is signed in a form that a second parse leaves unchanged.
func FuzzSignatureInput(f *testing.F) {
	f.Add(received(f, nil).Header.Get("Signature-Input"))
	f.Add(`sig1=();created=1;expires=2;nonce="a\"\\";keyid="k";alg="ed25519"`)
	f.Add(`sig1=( "a"  "b" ); created=01; expires=2;nonce="a";keyid=""`)
	f.Add(`*=("";x);created=?1`)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := parseInput(text)
		if err != nil {
			return
		}
		again, err := parseInput(in.label + "=" + in.params)
		if err != nil || again.params != in.params || again.keyID != in.keyID || again.nonce != in.nonce || again.created != in.created || again.expires != in.expires {
			t.Errorf("%q: %+v, and again %+v, %v", text, in, again, err)
		}
		if len(in.components) > maxComponents || len(in.keyID) > maxText+1 {
			t.Errorf("%q: %+v", text, in)
		}
	})
}

// FuzzSignedRequest: no request breaks the reader of its signature, and only what was signed counts.
func FuzzSignedRequest(f *testing.F) {
	signed := received(f, nil)
	const target = "/anp/rpc?q=%41"
	// The same in the process that fuzzes: Sign would take another nonce there.
	components := []string{"@method", "@target-uri", "@authority", "content-digest"}
	params := `("` + strings.Join(components, `" "`) + `");created=1800000000;expires=1800000060;nonce="n";keyid="k"`
	text, err := base(signed, components, params)
	if err != nil {
		f.Fatal(err)
	}
	input, value, sum := "sig1="+params, "sig1=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, text))+":", signed.Header.Get("Content-Digest")
	signed.Header.Set("Signature-Input", input)
	signed.Header.Set("Signature", value)
	s, err := Parse(signed)
	if err != nil || !s.Verify(key.Public().(ed25519.PublicKey)) {
		f.Fatal(err)
	}
	f.Add("POST", target, "site.example", input, value, sum)
	f.Add("GET", target, "site.example:443", strings.Replace(input, ` "content-digest"`, ``, 1), value, "")
	f.Add("POST", "*", "", input, "sig1=:AAAA:", "sha-512=:AAAA:, "+sum)
	f.Fuzz(func(t *testing.T, verb, target, host, input, value, sum string) {
		r := httptest.NewRequest("POST", "https://site.example/", strings.NewReader(body))
		r.Method, r.Host, r.RequestURI = verb, host, target
		for name, v := range map[string]string{"Signature-Input": input, "Signature": value, "Content-Digest": sum} {
			if v != "" {
				r.Header[name] = []string{v}
			}
		}
		got, err := Parse(r)
		if err != nil || !got.Verify(key.Public().(ed25519.PublicKey)) {
			return
		}
		if string(got.base) != string(s.base) || got.KeyID != s.KeyID || got.Nonce != s.Nonce || !got.Created.Equal(s.Created) || !got.Expires.Equal(s.Expires) || got.CheckBody([]byte(body)) != nil {
			t.Errorf("%s %s %s %q counts: %+v", verb, target, host, r.Header, got)
		}
	})
}
