// Package look calls a public name as a program does that knows nothing but its URL, and says which step fails and
// what to do. How it connects is passed in: by itself, or through a relay.
package look

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"agentsite/node/acts"
	"agentsite/transport/public"
	"agentsite/transport/web/outbound"

	"github.com/go-json-experiment/json"
)

// The steps that follow the connection.
const (
	stepURL      = "URL"
	stepTLS      = "TLS"
	stepSignIn   = "sign-in"
	stepDescribe = "description"
	stepCORS     = "CORS"
	stepTime     = "time"
)

const (
	maxBody  = 64 << 10
	maxTime  = 10 * time.Second // for which programs wait
	maxSteps = 25 * time.Second
)

// Dial connects to port 443 of a name. Its error is a public.StepError.
type Dial func(ctx context.Context, name string) (net.Conn, error)

// looker is a look at one URL.
type looker struct {
	at, base string
	name     string
	dial     Dial
	roots    *x509.CertPool // nil for those of the system
	client   *http.Client
	ready    *tls.Conn // that no request has used yet
	steps    []acts.PublicStep
}

// At calls a public URL step by step, until one fails.
func At(ctx context.Context, at string, dial Dial) []acts.PublicStep {
	return lookAt(ctx, at, dial, nil)
}

func lookAt(ctx context.Context, at string, dial Dial, roots *x509.CertPool) []acts.PublicStep {
	ctx, cancel := context.WithTimeout(ctx, maxSteps)
	defer cancel()
	base, isMCP := strings.CutSuffix(at, "/mcp")
	name, isHTTPS := strings.CutPrefix(base, "https://")
	if !isMCP || !isHTTPS || !public.IsName(name) {
		return []acts.PublicStep{{Step: stepURL, Err: fmt.Sprintf("%.80q is no URL of a site's public name", at)}}
	}
	l := &looker{at: at, base: base, name: name, dial: dial, roots: roots}
	transport := &http.Transport{
		DialTLSContext: l.connection, MaxConnsPerHost: 1, MaxResponseHeaderBytes: 16 << 10, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	l.client = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	begun := time.Now()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{public.StepConnect, l.connect}, {stepTLS, l.handshake}, {stepSignIn, l.signIn}, {stepDescribe, l.describe},
		{stepCORS, l.preflight},
	} {
		if !l.step(ctx, step.name, step.do) {
			break
		}
	}
	if l.ready != nil {
		l.ready.Close()
	}
	if took := time.Since(begun); took > maxTime && l.steps[len(l.steps)-1].Err == "" {
		err := fmt.Errorf("it took %v in all, and programs wait for %v", took.Round(time.Second/10), maxTime)
		l.steps = append(l.steps, acts.PublicStep{Step: stepTime, MS: ms(took), Err: err.Error(), Do: l.remedy(stepTime, err)})
	}
	return l.steps
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// step takes a step, and reports whether it is well.
func (l *looker) step(ctx context.Context, name string, do func(context.Context) error) bool {
	begun := time.Now()
	err := do(ctx)
	s := acts.PublicStep{Step: name, MS: ms(time.Since(begun))}
	if err != nil {
		if of := (*public.StepError)(nil); errors.As(err, &of) {
			s.Step = of.Step
		}
		s.Err, s.Do = err.Error(), l.remedy(s.Step, err)
	}
	l.steps = append(l.steps, s)
	return err == nil
}

// connect makes the connection for the handshake.
func (l *looker) connect(ctx context.Context) error {
	c, err := l.dial(ctx, l.name)
	if err == nil {
		l.ready = tls.Client(c, &tls.Config{ServerName: l.name, RootCAs: l.roots, NextProtos: []string{"http/1.1"}})
	}
	return err
}

func (l *looker) handshake(ctx context.Context) error { return l.ready.HandshakeContext(ctx) }

// connection returns the connection that is there, or another one after its end.
func (l *looker) connection(ctx context.Context, _, _ string) (net.Conn, error) {
	if l.ready == nil {
		if err := l.connect(ctx); err != nil {
			return nil, err
		}
		if err := l.handshake(ctx); err != nil {
			return nil, err
		}
	}
	c := l.ready
	l.ready = nil
	return c, nil
}

// ask sends a request, and returns the answer with that status.
func (l *looker) ask(ctx context.Context, method, url string, want int, header ...string) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("User-Agent", outbound.LookAgent)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer, err := l.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err == nil && answer.StatusCode != want {
		err = fmt.Errorf("the answer to %s %s is %d, and not %d", method, strings.TrimPrefix(url, l.base), answer.StatusCode, want)
	}
	return answer.Header, body, err
}

const description = "/.well-known/oauth-protected-resource"

// signIn: a program without a token is told where to get one.
func (l *looker) signIn(ctx context.Context) error {
	h, _, err := l.ask(ctx, http.MethodPost, l.at, http.StatusUnauthorized)
	want := `resource_metadata="` + l.base + description + strings.TrimPrefix(l.at, l.base) + `"`
	if err == nil && !strings.Contains(h.Get("WWW-Authenticate"), want) {
		err = errors.New("the refusal does not say where to sign in")
	}
	return err
}

// describe: the descriptions are of this URL, and of no other.
func (l *looker) describe(ctx context.Context) error {
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	var server struct {
		Issuer  string   `json:"issuer"`
		Methods []string `json:"code_challenge_methods_supported"`
	}
	for path, into := range map[string]any{
		description + strings.TrimPrefix(l.at, l.base): &resource, "/.well-known/oauth-authorization-server": &server,
	} {
		_, body, err := l.ask(ctx, http.MethodGet, l.base+path, http.StatusOK)
		if err == nil && json.Unmarshal(bytes.TrimSpace(body), into) != nil {
			err = fmt.Errorf("%s has no JSON as a site's", path)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case resource.Resource != l.at:
		return fmt.Errorf("the description is of %.80q", resource.Resource)
	case !slices.Contains(resource.Servers, l.base):
		return fmt.Errorf("programs are sent elsewhere to sign in: %.80q", resource.Servers)
	case server.Issuer != l.base:
		return fmt.Errorf("the issuer calls itself %.80q", server.Issuer)
	case !slices.Contains(server.Methods, "S256"):
		return errors.New("the sign-in does not offer S256")
	}
	return nil
}

// preflight: a page of another origin may call.
func (l *looker) preflight(ctx context.Context) error {
	h, _, err := l.ask(ctx, http.MethodOptions, l.at, http.StatusNoContent, "Origin", "https://inspector.example",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type, mcp-protocol-version")
	headers := strings.ToLower(h.Get("Access-Control-Allow-Headers"))
	if err == nil && (h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(headers, "authorization")) {
		err = errors.New("programs in a browser may not call")
	}
	return err
}

// remedy returns what to do about a step that failed.
func (l *looker) remedy(step string, err error) string {
	switch {
	case errors.Is(err, outbound.ErrPrivate):
		return "programs elsewhere cannot follow the name to there, and nor does this: correct the DNS; where your own " +
			"network's DNS answers so on purpose, look with agentsite public --to ADDRESS"
	case step == public.StepRefused:
		return "a relay looks for the sites that its owner has listed (agentsite relay --public), twice a minute"
	case step == public.StepDNS:
		return "have the DNS point " + l.name + " to where its callers are to come to, by A or CNAME; for a name that a " +
			"relay gives, the relay's owner does this"
	case step == public.StepConnect:
		return "nothing answers at port 443: start the relay that the name leads to, or have the router forward the port, " +
			"and look at firewalls"
	case step == stepTLS:
		return l.remedyTLS(err)
	case step == stepTime:
		return "look for a slow DNS, relay or line: programs give up before"
	}
	return "something else answers in place of the site, or a proxy changes what it says: have it pass on the whole host as it is"
}

func (l *looker) remedyTLS(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has ended, or the clock that judges it is wrong: see what the renewal waits for"
	case errors.As(err, &unknown):
		return "the certificate is for trials (acme: staging), of a private authority, or of something in between"
	case errors.As(err, &host):
		return "another server answers: have the DNS point the name to the relay, or the port be forwarded to the site"
	}
	return "the relay does not know the name now, or the site has no certificate for it yet: see the relays and the certificate"
}
